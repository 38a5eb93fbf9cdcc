#include "protocol/http/response.h"

#include <string>

#include <gtest/gtest.h>

namespace kvferry::http {
namespace {

std::string composed(const Response& response, const ResponseFraming& framing = {}) {
  std::string out;
  compose_response(out, response, framing);
  return out;
}

TEST(HttpResponse, StatesLengthAndType) {
  EXPECT_EQ(composed({.body = "ok\n"}),
            "HTTP/1.1 200 OK\r\n"
            "Content-Type: text/plain; charset=utf-8\r\n"
            "Content-Length: 3\r\n"
            "Cache-Control: no-store\r\n"
            "X-Content-Type-Options: nosniff\r\n"
            "\r\n"
            "ok\n");
}

TEST(HttpResponse, HeadHasTheLengthAndNoBody) {
  const std::string bytes = composed({.body = "ok\n"}, {.is_head = true});
  EXPECT_NE(bytes.find("Content-Length: 3\r\n"), std::string::npos);
  EXPECT_TRUE(bytes.ends_with("\r\n\r\n"));
}

TEST(HttpResponse, NoContentHasNoLength) {
  const std::string bytes = composed({.status = 204});
  EXPECT_TRUE(bytes.starts_with("HTTP/1.1 204 No Content\r\n"));
  EXPECT_EQ(bytes.find("Content-"), bytes.find("Content-Type-Options"));
}

TEST(HttpResponse, SaysWhetherTheConnectionStays) {
  const Response response{.body = "x"};
  EXPECT_EQ(composed(response, {.keep_alive = true}).find("Connection"), std::string::npos);
  EXPECT_NE(composed(response, {.keep_alive = false}).find("\r\nConnection: close\r\n"),
            std::string::npos);
  EXPECT_NE(composed(response, {.keep_alive = true, .is_http10 = true})
                .find("\r\nConnection: keep-alive\r\n"),
            std::string::npos);
}

TEST(HttpResponse, AddsFields) {
  EXPECT_NE(composed({.status = 405, .fields = {{"Allow", "GET, HEAD"}}})
                .find("\r\nAllow: GET, HEAD\r\n"),
            std::string::npos);
}

TEST(HttpResponse, HasAReasonForEveryStatusThatRequestsCanCause) {
  for (const int status :
       {200, 202, 204, 400, 401, 403, 404, 405, 409, 413, 422, 431, 500, 501, 503, 505}) {
    EXPECT_NE(reason_of(status), "Unknown") << status;
  }
  EXPECT_EQ(reason_of(299), "Unknown");
}

}  // namespace
}  // namespace kvferry::http
