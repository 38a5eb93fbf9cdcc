#include "admin/admin_server.h"

#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"
#include "tests/unit/admin/model_sample.h"
#include "tests/unit/net/loop_fixture.h"

namespace kvferry::admin {
namespace {

using net::Recorder;

std::size_t count_of(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + part.size())) {
    ++count;
  }
  return count;
}

class AdminServerTest : public net::LoopTest {
 protected:
  void start(AdminOptions options = {}) {
    if (!options.listen.is_set()) {
      options.listen = loopback();
    }
    auto opened = AdminServer::open(*loop_, options);
    ASSERT_TRUE(opened.has_value()) << opened.error().text();
    server_ = std::move(opened).value();
  }
  /// Sends `bytes` on a fresh connection and returns all that comes until the server closes it.
  std::string talk(std::string_view bytes) {
    Recorder client;
    connect(client, server_->address());
    client.stream->write(bytes);
    EXPECT_TRUE(run_until([&] { return client.ends + client.closes > 0; }));
    return client.data;
  }
  std::string ask(const std::string& line, const std::string& fields = "",
                  const std::string& body = "") {
    const std::string length =
        body.empty() ? "" : "Content-Length: " + std::to_string(body.size()) + "\r\n";
    return talk(line + " HTTP/1.1\r\nHost: admin.test:1\r\nConnection: close\r\n" + fields +
                length + "\r\n" + body);
  }

  std::unique_ptr<AdminServer> server_;
};

INSTANTIATE_TEST_SUITE_P(Engines, AdminServerTest, testing::ValuesIn(net::kEngines),
                         net::engine_name_of);

TEST_P(AdminServerTest, ListsItsRoutes) {
  start();
  server_->add_route(
      "POST", "/reload", [](const http::Request&) { return http::Response{}; },
      "reads the configuration again");
  const std::string page = ask("GET /");
  EXPECT_TRUE(page.starts_with("HTTP/1.1 200 OK\r\n"));
  EXPECT_NE(page.find("GET /healthz"), std::string::npos);
  EXPECT_NE(page.find("POST /reload  reads the configuration again\n"), std::string::npos);
}

TEST_P(AdminServerTest, HealthFollowsDraining) {
  start();
  EXPECT_TRUE(ask("GET /healthz").ends_with("\r\n\r\nok\n"));
  server_->set_draining(true);
  EXPECT_TRUE(ask("GET /healthz").starts_with("HTTP/1.1 503 Service Unavailable\r\n"));
  server_->set_draining(false);
  EXPECT_TRUE(ask("GET /healthz?x").starts_with("HTTP/1.1 200 OK\r\n"));
}

TEST_P(AdminServerTest, HandlersSeeTheRequest) {
  start();
  server_->add_route("POST", "/echo", [](const http::Request& request) {
    return http::Response{.status = 202,
                          .body = std::string(request.query) + "|" + std::string(request.body)};
  });
  const std::string page = ask("POST /echo?q", "", "body");
  EXPECT_TRUE(page.starts_with("HTTP/1.1 202 Accepted\r\n"));
  EXPECT_TRUE(page.ends_with("\r\n\r\nq|body"));
}

TEST_P(AdminServerTest, ShowsMetricsAndStateOfTheMoment) {
  start();
  int scrapes = 0;
  add_state_routes(*server_, [&scrapes] {
    MetricsModel model = make_model_sample();
    model.process.workers = static_cast<std::uint32_t>(40 + ++scrapes);
    return model;
  });
  const std::string metrics = ask("GET /metrics");
  EXPECT_NE(metrics.find("\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"),
            std::string::npos);
  EXPECT_NE(metrics.find("\nkvferry_workers 41\n"), std::string::npos);
  EXPECT_NE(ask("GET /metrics").find("\nkvferry_workers 42\n"), std::string::npos);
  const std::string state = ask("GET /stats.json");
  EXPECT_NE(state.find("\r\nContent-Type: application/json\r\n"), std::string::npos);
  EXPECT_NE(state.find(R"("workers":43)"), std::string::npos);
}

TEST_P(AdminServerTest, HeadHasNoBody) {
  start();
  const std::string page = ask("HEAD /healthz");
  EXPECT_NE(page.find("\r\nContent-Length: 3\r\n"), std::string::npos);
  EXPECT_TRUE(page.ends_with("\r\n\r\n"));
}

TEST_P(AdminServerTest, UnknownPathsGetTheList) {
  start();
  const std::string page = ask("GET /nothing");
  EXPECT_TRUE(page.starts_with("HTTP/1.1 404 Not Found\r\n"));
  EXPECT_NE(page.find("GET /healthz"), std::string::npos);
}

TEST_P(AdminServerTest, OtherMethodsAreToldWhatIsAllowed) {
  start();
  server_->add_route("POST", "/healthz", [](const http::Request&) { return http::Response{}; });
  const std::string page = ask("DELETE /healthz");
  EXPECT_TRUE(page.starts_with("HTTP/1.1 405 Method Not Allowed\r\n"));
  EXPECT_NE(page.find("\r\nAllow: GET, HEAD, POST\r\n"), std::string::npos);
}

TEST_P(AdminServerTest, BrokenRequestsAreAnsweredOnceAndClosed) {
  start();
  const std::string page = talk("stats\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(page.starts_with("HTTP/1.1 400 Bad Request\r\n"));
  EXPECT_NE(page.find("\r\nConnection: close\r\n"), std::string::npos);
  EXPECT_EQ(count_of(page, "\r\nContent-Length: "), 1U);
  EXPECT_TRUE(talk("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1048577\r\n\r\n")
                  .starts_with("HTTP/1.1 413 "));
}

TEST_P(AdminServerTest, TokenGuardsEverythingButHealth) {
  AdminOptions options;
  options.token = "s3cret";
  start(options);
  const std::string refused = ask("GET /");
  EXPECT_TRUE(refused.starts_with("HTTP/1.1 401 Unauthorized\r\n"));
  EXPECT_NE(refused.find("\r\nWWW-Authenticate: Bearer\r\n"), std::string::npos);
  for (const char* fields : {"Authorization: Bearer s3cre\r\n", "Authorization: Bearer s3cretX\r\n",
                             "Authorization: Bearer\r\n", "Authorization: s3cret\r\n"}) {
    EXPECT_TRUE(ask("GET /", fields).starts_with("HTTP/1.1 401 ")) << fields;
  }
  EXPECT_TRUE(ask("GET /unknown").starts_with("HTTP/1.1 401 "));
  EXPECT_TRUE(ask("GET /", "Authorization: Bearer s3cret\r\n").starts_with("HTTP/1.1 200 "));
  EXPECT_TRUE(ask("GET /healthz").starts_with("HTTP/1.1 200 "));
}

TEST_P(AdminServerTest, ActionsFromPagesOfOtherSitesAreRefused) {
  start();
  int runs = 0;
  server_->add_route("POST", "/act", [&runs](const http::Request&) {
    ++runs;
    return http::Response{};
  });
  for (const char* fields :
       {"Origin: http://evil.test\r\n", "Origin: null\r\n", "Origin: http://xadmin.test:1\r\n"}) {
    EXPECT_TRUE(ask("POST /act", fields).starts_with("HTTP/1.1 403 ")) << fields;
  }
  EXPECT_EQ(runs, 0);
  EXPECT_TRUE(ask("POST /act", "Origin: http://admin.test:1\r\n").starts_with("HTTP/1.1 200 "));
  EXPECT_TRUE(ask("POST /act").starts_with("HTTP/1.1 200 "));
  EXPECT_EQ(runs, 2);
}

TEST_P(AdminServerTest, PipelinedRequestsAreAnsweredInOrder) {
  start();
  const std::string page = talk(
      "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET /no HTTP/1.1\r\nHost: x\r\n\r\n"
      "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
      "GET /late HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(count_of(page, "HTTP/1.1 200 OK"), 2U);
  EXPECT_EQ(count_of(page, "HTTP/1.1 404 Not Found"), 1U);
  EXPECT_LT(page.find("HTTP/1.1 200"), page.find("HTTP/1.1 404"));
}

TEST_P(AdminServerTest, BodiesAreAskedForWhenTheClientWaits) {
  start();
  server_->add_route("POST", "/size", [](const http::Request& request) {
    return http::Response{.body = std::to_string(request.body.size())};
  });
  Recorder client;
  connect(client, server_->address());
  client.stream->write(
      "POST /size HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: 100-continue\r\n"
      "Content-Length: 3\r\n\r\n");
  ASSERT_TRUE(run_until([&] { return client.data == http::kContinue; }));
  client.stream->write("a");
  client.stream->write("bc");
  ASSERT_TRUE(run_until([&] { return client.ends + client.closes > 0; }));
  EXPECT_TRUE(client.data.ends_with("\r\n\r\n3"));
  EXPECT_EQ(count_of(client.data, "100 Continue"), 1U);
}

TEST_P(AdminServerTest, ClientsThatDoNotReadAreNotReadEither) {
  start();
  int runs = 0;
  server_->add_route("GET", "/big", [&runs](const http::Request&) {
    ++runs;
    return http::Response{.body = std::string(std::size_t{1} << 20, 'b')};
  });
  constexpr int kRequests = 20;
  std::string requests;
  for (int i = 0; i < kRequests; ++i) {
    requests += "GET /big HTTP/1.1\r\nHost: x\r\n" +
                std::string(i + 1 == kRequests ? "Connection: close\r\n" : "") + "\r\n";
  }
  Recorder client;
  client.keeps_data = false;
  connect(client, server_->address());
  client.stream->pause_reading();
  client.stream->write(requests);
  ASSERT_TRUE(run_until([&] { return runs > 0; }));
  run_for(base::Millis(50));
  EXPECT_LT(runs, kRequests);  // Sockets hold some of the answers, not 20 MiB.
  client.stream->resume_reading();
  ASSERT_TRUE(run_until([&] { return client.ends + client.closes > 0; }));
  EXPECT_EQ(runs, kRequests);
  EXPECT_GT(client.bytes, std::size_t{kRequests} << 20);
}

TEST_P(AdminServerTest, HalfClosedClientsGetTheirAnswers) {
  start();
  // A plain blocking socket, so that the end is sent before the server sees the first byte.
  const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_GE(client, 0);
  const net::Address& address = server_->address();
  ASSERT_EQ(::connect(client, address.get(), address.size()), 0);
  const std::string_view requests =
      "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
  ASSERT_EQ(send(client, requests.data(), requests.size(), 0),
            static_cast<ssize_t>(requests.size()));
  ASSERT_EQ(shutdown(client, SHUT_WR), 0);
  bool was_seen = false;
  EXPECT_TRUE(run_until([&] {
    was_seen = was_seen || server_->connections() == 1;
    return was_seen && server_->connections() == 0;
  }));
  std::array<char, 4096> answers{};
  const ssize_t size = recv(client, answers.data(), answers.size(), 0);
  ASSERT_GT(size, 0);
  EXPECT_EQ(count_of({answers.data(), static_cast<std::size_t>(size)}, "ok\n"), 2U);
  close(client);
}

TEST_P(AdminServerTest, TakesConnectionsUpToItsLimit) {
  AdminOptions options;
  options.connections_max = 2;
  start(options);
  Recorder first;
  Recorder second;
  connect(first, server_->address());
  connect(second, server_->address());
  ASSERT_TRUE(run_until([&] { return server_->connections() == 2; }));
  EXPECT_EQ(ask("GET /healthz"), "");
  EXPECT_EQ(server_->rejected(), 1U);
  first.stream.reset();
  ASSERT_TRUE(run_until([&] { return server_->connections() == 1; }));
  EXPECT_TRUE(ask("GET /healthz").ends_with("ok\n"));
}

TEST_P(AdminServerTest, SlowRequestsEndWithTheIdleTimeout) {
  AdminOptions options;
  options.idle_timeout = base::Millis(20);
  start(options);
  EXPECT_EQ(talk("GET /healthz HTTP/1.1\r\nHost:"), "");
  EXPECT_EQ(server_->connections(), 0U);
}

TEST_P(AdminServerTest, ListensOnUnixSockets) {
  const test::TempFolder folder;
  const std::string path = folder.file("admin.sock");
  AdminOptions options;
  options.listen = net::Address::from_path(path).value();
  start(options);
  EXPECT_TRUE(ask("GET /healthz").ends_with("ok\n"));
  server_.reset();
  EXPECT_NE(access(path.c_str(), F_OK), 0);
}

TEST_P(AdminServerTest, ASecondServerOnThePortIsRefused) {
  start();
  AdminOptions options;
  options.listen = server_->address();
  EXPECT_FALSE(AdminServer::open(*loop_, options).has_value());
}

TEST_P(AdminServerTest, AHandlerMayPutAnotherServerInItsPlace) {
  start();
  std::unique_ptr<AdminServer> retired;
  server_->add_route("POST", "/replace", [&](const http::Request&) {
    AdminOptions options;
    options.listen = server_->address();
    server_->stop_listening();
    retired = std::move(server_);
    start(options);
    return http::Response{.body = "replaced\n"};
  });
  EXPECT_TRUE(ask("POST /replace").ends_with("replaced\n"));
  retired.reset();
  ASSERT_NE(server_, nullptr);
  EXPECT_TRUE(ask("POST /replace").starts_with("HTTP/1.1 404 "));
}

TEST_P(AdminServerTest, EndsWithOpenConnections) {
  start();
  Recorder client;
  connect(client, server_->address());
  ASSERT_TRUE(run_until([&] { return server_->connections() == 1; }));
  server_.reset();
  EXPECT_TRUE(run_until([&] { return client.ends + client.closes > 0; }));
}

TEST(AdminToken, ComparesWhole) {
  EXPECT_TRUE(is_same_token("abc", "abc"));
  for (const char* given : {"", "a", "abcd", "abcabc", "xbc", "abx"}) {
    EXPECT_FALSE(is_same_token(given, "abc")) << given;
  }
  EXPECT_FALSE(is_same_token("a", ""));
}

}  // namespace
}  // namespace kvferry::admin
