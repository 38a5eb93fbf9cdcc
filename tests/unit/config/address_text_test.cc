#include "config/address_text.h"

#include <gtest/gtest.h>

namespace kvferry::config {
namespace {

constexpr AddressRules kNutcracker{};
constexpr AddressRules kOurs{.port_zero_allowed = true, .weight_may_be_missing = true};

Endpoint endpoint_of(std::string_view text) {
  Endpoint endpoint;
  EXPECT_FALSE(parse_endpoint(text, kNutcracker, endpoint).is_set()) << text;
  return endpoint;
}

TEST(AddressText, ReadsHostsAndPorts) {
  EXPECT_EQ(endpoint_of("127.0.0.1:22121").host, "127.0.0.1");
  EXPECT_EQ(endpoint_of("localhost:1").port, 1);
  EXPECT_EQ(endpoint_of("localhost:65535").port, 65535);
  EXPECT_EQ(endpoint_of("[::1]:22121").host, "::1");
  EXPECT_EQ(endpoint_of("::1:22121").host, "::1");
  EXPECT_EQ(endpoint_of("::1:22121").to_string(), "[::1]:22121");
}

TEST(AddressText, ReadsUnixSocketsWithAndWithoutMode) {
  EXPECT_EQ(endpoint_of("/run/a.sock").path, "/run/a.sock");
  EXPECT_EQ(endpoint_of("/run/a.sock").mode, std::nullopt);
  EXPECT_EQ(endpoint_of("/run/a.sock 0660").mode, 0660U);
  EXPECT_EQ(endpoint_of("/run/a.sock 777").mode, 0777U);
}

TEST(AddressText, RefusesWhatIsNoAddress) {
  for (const char* text : {"", "localhost", ":1", "host:", "host:x", "host:65536", "host:-1",
                           "a b:1", "[::1:1", "[host]:1", "::1]:1", "host:0", "/", "/run/a 1000",
                           "/run/a 0999", "/run/a ", "/run/a  0660"}) {
    Endpoint endpoint;
    EXPECT_EQ(parse_endpoint(text, kNutcracker, endpoint).code, "E-addr") << text;
  }
}

TEST(AddressText, BoundsPathsAndHosts) {
  Endpoint endpoint;
  const std::string longest = "/" + std::string(kUnixPathBytesMax - 1, 'x');
  EXPECT_FALSE(parse_endpoint(longest, kNutcracker, endpoint).is_set());
  EXPECT_TRUE(parse_endpoint(longest + "x", kNutcracker, endpoint).is_set());
  const std::string host(kHostBytesMax, 'h');
  EXPECT_FALSE(parse_endpoint(host + ":1", kNutcracker, endpoint).is_set());
  EXPECT_TRUE(parse_endpoint(host + "h:1", kNutcracker, endpoint).is_set());
}

TEST(AddressText, AllowsPortZeroOnlyWhereToldTo) {
  Endpoint endpoint;
  EXPECT_FALSE(parse_endpoint("127.0.0.1:0", kOurs, endpoint).is_set());
  EXPECT_TRUE(parse_endpoint("127.0.0.1:0", kNutcracker, endpoint).is_set());
}

struct GoodServer {
  const char* text;
  AddressRules rules;
  const char* host;
  std::uint16_t port;
  std::uint32_t weight;
  const char* name;
};

class ReadsServer : public testing::TestWithParam<GoodServer> {};

TEST_P(ReadsServer, InEveryForm) {
  const GoodServer& expected = GetParam();
  pool::ServerOptions server;
  bool has_weight = false;
  const AddressError error = parse_server(expected.text, expected.rules, server, has_weight);
  ASSERT_FALSE(error.is_set()) << expected.text << ": " << error.message;
  EXPECT_EQ(server.host, expected.host);
  EXPECT_EQ(server.port, expected.port);
  EXPECT_EQ(server.weight, expected.weight);
  EXPECT_EQ(server.name, expected.name);
  EXPECT_EQ(server.is_unix, expected.text[0] == '/');
}

INSTANTIATE_TEST_SUITE_P(
    AddressText, ReadsServer,
    testing::Values(GoodServer{"10.0.0.1:6379:1", kNutcracker, "10.0.0.1", 6379, 1, ""},
                    GoodServer{"10.0.0.1:6379:1 r1", kNutcracker, "10.0.0.1", 6379, 1, "r1"},
                    GoodServer{"h:1:2147483647", kNutcracker, "h", 1, 2147483647, ""},
                    GoodServer{"h:1:01", kNutcracker, "h", 1, 1, ""},
                    GoodServer{"::1:6379:2", kNutcracker, "::1", 6379, 2, ""},
                    GoodServer{"[::1]:6379:2", kNutcracker, "::1", 6379, 2, ""},
                    GoodServer{"/tmp/a.sock:3", kNutcracker, "/tmp/a.sock", 0, 3, ""},
                    GoodServer{"/tmp/a.sock:3 n", kNutcracker, "/tmp/a.sock", 0, 3, "n"},
                    GoodServer{"h:6379", kOurs, "h", 6379, 1, ""},
                    GoodServer{"h:6379 r1", kOurs, "h", 6379, 1, "r1"},
                    GoodServer{"[::1]:6379", kOurs, "::1", 6379, 1, ""},
                    GoodServer{"::1:6379:4", kOurs, "::1", 6379, 4, ""},
                    GoodServer{"/tmp/a.sock", kOurs, "/tmp/a.sock", 0, 1, ""}));

struct BadServer {
  const char* text;
  const char* code;
};

class RefusesServer : public testing::TestWithParam<BadServer> {};

TEST_P(RefusesServer, WithTheCodeOfTheWrongPart) {
  pool::ServerOptions server;
  bool has_weight = false;
  EXPECT_EQ(parse_server(GetParam().text, kNutcracker, server, has_weight).code, GetParam().code)
      << GetParam().text;
}

INSTANTIATE_TEST_SUITE_P(
    AddressText, RefusesServer,
    testing::Values(BadServer{"", "E-server"}, BadServer{"h", "E-server"},
                    BadServer{"h:1", "E-server"}, BadServer{"/tmp/a", "E-server"},
                    BadServer{":1:1", "E-server"}, BadServer{"h:1:1 ", "E-server"},
                    BadServer{"h:1:1  two", "E-server"}, BadServer{"h:1:1 a b", "E-server"},
                    BadServer{"h:0:1", "E-addr"}, BadServer{"h:65536:1", "E-addr"},
                    BadServer{"h::1", "E-addr"}, BadServer{"h:x:1", "E-addr"},
                    BadServer{"h:1:0", "E-weight"}, BadServer{"h:1:-1", "E-weight"},
                    BadServer{"h:1:2147483648", "E-weight"}, BadServer{"h:1:x", "E-weight"},
                    BadServer{"h:1:", "E-weight"}, BadServer{"/tmp/a:0", "E-weight"},
                    BadServer{"/tmp/a:11:1", "E-weight"}, BadServer{"tmp/a:1:1", "E-server"}));

}  // namespace
}  // namespace kvferry::config
