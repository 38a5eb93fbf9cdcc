#include "net/address.h"

#include <gtest/gtest.h>

namespace kvferry::net {
namespace {

TEST(Address, KnowsNumericAddresses) {
  struct Case {
    const char* host;
    const char* text;
    int family;
  };
  for (const Case& c :
       {Case{"127.0.0.1", "127.0.0.1:11211", AF_INET}, Case{"0.0.0.0", "0.0.0.0:11211", AF_INET},
        Case{"::1", "[::1]:11211", AF_INET6}, Case{"::", "[::]:11211", AF_INET6},
        Case{"2001:db8::7", "[2001:db8::7]:11211", AF_INET6},
        Case{"fe80::1%lo", "[fe80::1%lo]:11211", AF_INET6}}) {
    auto address = Address::from_ip(c.host, 11211);
    ASSERT_TRUE(address.has_value()) << c.host;
    EXPECT_EQ(address->to_string(), c.text);
    EXPECT_EQ(address->family(), c.family);
    EXPECT_EQ(address->port(), 11211);
    EXPECT_TRUE(address->is_set());
    EXPECT_FALSE(address->is_unix());
  }
}

TEST(Address, NamesAreNotNumeric) {
  for (const char* host : {"", "localhost", "127.0.0", "1.2.3.4.5", "256.0.0.1", "[::1]",
                           "fe80::1%nosuchinterface", "127.0.0.1%lo", " 127.0.0.1"}) {
    auto address = Address::from_ip(host, 1);
    ASSERT_FALSE(address.has_value()) << host;
    EXPECT_EQ(address.error().code(), base::ErrorCode::NotFound) << host;
  }
}

TEST(Address, UnixPathsFitOrAreRefused) {
  for (const std::size_t size : {1U, 106U, 107U}) {
    const std::string path(size, 'p');
    auto address = Address::from_path(path);
    ASSERT_TRUE(address.has_value()) << size;
    EXPECT_EQ(address->to_string(), path);
    EXPECT_TRUE(address->is_unix());
    EXPECT_EQ(address->port(), 0);
  }
  for (const std::string& path : {std::string(), std::string(108, 'p'), std::string("a\0b", 3)}) {
    auto address = Address::from_path(path);
    ASSERT_FALSE(address.has_value()) << path.size();
    EXPECT_EQ(address.error().code(), base::ErrorCode::InvalidInput);
  }
}

TEST(Address, ComparesFamilyHostAndPort) {
  const auto ip = [](const char* host, std::uint16_t port) {
    return Address::from_ip(host, port).value();
  };
  EXPECT_EQ(ip("127.0.0.1", 1), ip("127.0.0.1", 1));
  EXPECT_FALSE(ip("127.0.0.1", 1) == ip("127.0.0.1", 2));
  EXPECT_FALSE(ip("127.0.0.1", 1) == ip("127.0.0.2", 1));
  EXPECT_FALSE(ip("127.0.0.1", 1) == ip("::1", 1));
  EXPECT_EQ(Address(), Address());
  EXPECT_FALSE(Address().is_set());
  EXPECT_FALSE(Address::from_path("/a").value() == Address::from_path("/b").value());
}

}  // namespace
}  // namespace kvferry::net
