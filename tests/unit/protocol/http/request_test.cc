#include "protocol/http/request.h"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace kvferry::http {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::string_view kPlain = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";

/// What parsing a stream gave, in a form that can be compared.
std::string describe(const Request& request) {
  return std::string(request.method) + "|" + std::string(request.path) + "|" +
         std::string(request.query) + "|" + std::string(request.fields) + "|" +
         std::string(request.body) + "|" + (request.is_http10 ? "1.0" : "1.1") +
         (request.keep_alive ? " keep" : " close") + (request.expects_continue ? " expect" : "");
}

/// Parses a stream that arrives in pieces which end at `cuts`, requests one after another.
std::vector<std::string> parse_stream(std::string_view stream,
                                      const std::vector<std::size_t>& cuts) {
  std::vector<std::string> seen;
  RequestParser parser;
  std::size_t begin = 0;
  for (const std::size_t cut : cuts) {
    while (begin <= cut) {
      const RequestParser::Outcome outcome = parser.parse(stream.substr(begin, cut - begin));
      if (outcome.is_need_more()) {
        break;
      }
      if (outcome.is_failed()) {
        seen.emplace_back(text_of(outcome.error()));
        return seen;
      }
      seen.push_back(describe(outcome.value()));
      begin += outcome.value().size_bytes;
    }
  }
  return seen;
}

/// The splitter: whole, byte by byte, and cut in two at every place.
void expect_same_under_every_split(std::string_view stream) {
  const std::vector<std::string> whole = parse_stream(stream, {stream.size()});
  std::vector<std::size_t> every;
  for (std::size_t cut = 1; cut <= stream.size(); ++cut) {
    every.push_back(cut);
    EXPECT_EQ(parse_stream(stream, {cut, stream.size()}), whole) << "cut at " << cut;
  }
  EXPECT_EQ(parse_stream(stream, every), whole);
}

RequestParser::Outcome parse_once(std::string_view bytes) {
  RequestParser parser;
  return parser.parse(bytes);
}

TEST(HttpRequest, ParsesPlainGet) {
  const RequestParser::Outcome outcome = parse_once(kPlain);
  ASSERT_TRUE(outcome.is_done());
  const Request& request = outcome.value();
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.path, "/metrics");
  EXPECT_EQ(request.query, "");
  EXPECT_EQ(request.fields, "Host: x\r\n");
  EXPECT_EQ(request.body, "");
  EXPECT_EQ(request.size_bytes, kPlain.size());
  EXPECT_TRUE(request.keep_alive);
  EXPECT_FALSE(request.is_http10);
}

TEST(HttpRequest, ParsesQueryAndBody) {
  const RequestParser::Outcome outcome =
      parse_once("POST /a?b=c?d HTTP/1.1\r\nhost:x\r\nCONTENT-LENGTH:\t 3 \r\n\r\nabcGET");
  ASSERT_TRUE(outcome.is_done());
  EXPECT_EQ(outcome.value().path, "/a");
  EXPECT_EQ(outcome.value().query, "b=c?d");
  EXPECT_EQ(outcome.value().body, "abc");
}

TEST(HttpRequest, FindsFieldsInAnyCase) {
  const RequestParser::Outcome outcome =
      parse_once("GET / HTTP/1.1\r\nHost: x\r\nAuthorization:  Bearer a:b \r\nEmpty:\r\n\r\n");
  ASSERT_TRUE(outcome.is_done());
  EXPECT_EQ(outcome.value().field("authorization"), "Bearer a:b");
  EXPECT_EQ(outcome.value().field("EMPTY"), "");
  EXPECT_EQ(outcome.value().field("author"), std::nullopt);
}

TEST(HttpRequest, KnowsWhenTheConnectionStays) {
  struct Case {
    std::string_view bytes;
    bool keep_alive;
  };
  const Case cases[] = {
      {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", true},
      {"GET / HTTP/1.1\r\nHost: x\r\nConnection: Close\r\n\r\n", false},
      {"GET / HTTP/1.1\r\nHost: x\r\nConnection: keep-alive , close\r\n\r\n", false},
      {"GET / HTTP/1.1\r\nHost: x\r\nConnection: closed\r\n\r\n", true},
      {"GET / HTTP/1.0\r\n\r\n", false},
      {"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true},
      {"GET / HTTP/1.0\r\nConnection: keep-alive\r\nConnection: close\r\n\r\n", false},
  };
  for (const Case& one : cases) {
    const RequestParser::Outcome outcome = parse_once(one.bytes);
    ASSERT_TRUE(outcome.is_done()) << one.bytes;
    EXPECT_EQ(outcome.value().keep_alive, one.keep_alive) << one.bytes;
  }
}

TEST(HttpRequest, RefusesWhatCouldBeReadInTwoWays) {
  struct Case {
    std::string_view bytes;
    RequestError error;
  };
  const Case cases[] = {
      {"\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", RequestError::BadRequestLine},
      {"\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", RequestError::BadRequestLine},
      {"stats\r\n", RequestError::BadRequestLine},
      {"GET / HTTP/1.1\n", RequestError::BadRequestLine},
      {"GET  / HTTP/1.1\r\n", RequestError::BadRequestLine},
      {"GET / HTTP/1.1 \r\n", RequestError::BadRequestLine},
      {"GET /\r\n", RequestError::BadRequestLine},
      {"GET / http/1.1\r\n", RequestError::BadRequestLine},
      {"GET / HTTP/1,1\r\n", RequestError::BadRequestLine},
      {"GET / HTTP/1.x\r\n", RequestError::BadRequestLine},
      {"GET * HTTP/1.1\r\n", RequestError::BadRequestLine},
      {"GET http://x/ HTTP/1.1\r\n", RequestError::BadRequestLine},
      {"GET /a#b HTTP/1.1\r\n", RequestError::BadRequestLine},
      {"GET /\x80 HTTP/1.1\r\n", RequestError::BadRequestLine},
      {"GET /\0 HTTP/1.1\r\n"sv, RequestError::BadRequestLine},
      {"G(T / HTTP/1.1\r\n", RequestError::BadRequestLine},
      {" / HTTP/1.1\r\n", RequestError::BadRequestLine},
      {"GET / HTTP/2.0\r\n", RequestError::VersionUnsupported},
      {"GET / HTTP/1.2\r\n", RequestError::VersionUnsupported},
      {"GET / HTTP/1.1\r\n\r\n", RequestError::BadHost},
      {"GET / HTTP/1.1\r\nHost: x\r\nhOST: y\r\n\r\n", RequestError::BadHost},
      {"GET / HTTP/1.1\r\nHost\r\n\r\n", RequestError::BadField},
      {"GET / HTTP/1.1\r\nHost : x\r\n\r\n", RequestError::BadField},
      {"GET / HTTP/1.1\r\nHost: x\r\n y\r\n\r\n", RequestError::BadField},
      {"GET / HTTP/1.1\r\n: x\r\n\r\n", RequestError::BadField},
      {"GET / HTTP/1.1\r\nHost: a\nb: c\r\n\r\n", RequestError::BadField},
      {"GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n", RequestError::BadField},
      {"GET / HTTP/1.1\r\nHost: a\0b\r\n\r\n"sv, RequestError::BadField},
      {"GET / HTTP/1.1\r\nHost: a\x7f\r\n\r\n", RequestError::BadField},
      {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length:\r\n\r\n", RequestError::BadLength},
      {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +1\r\n\r\n", RequestError::BadLength},
      {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1, 1\r\n\r\n", RequestError::BadLength},
      {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0x1\r\n\r\n", RequestError::BadLength},
      {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
       RequestError::BadLength},
      {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 18446744073709551617\r\n\r\n",
       RequestError::BodyTooLarge},
      {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
       RequestError::CodingUnsupported},
      {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\ntransfer-encoding: identity\r\n\r\n",
       RequestError::CodingUnsupported},
  };
  for (const Case& one : cases) {
    const RequestParser::Outcome outcome = parse_once(one.bytes);
    ASSERT_TRUE(outcome.is_failed()) << one.bytes;
    EXPECT_EQ(text_of(outcome.error()), text_of(one.error)) << one.bytes;
    expect_same_under_every_split(one.bytes);
  }
}

TEST(HttpRequest, HeadMayHave8KiBAndNotOneByteMore) {
  const auto head_of = [](std::size_t bytes) {
    std::string head = "GET / HTTP/1.1\r\nHost: x\r\nPadding: ";
    head.append(bytes - head.size() - 4, 'p');
    return head + "\r\n\r\n";
  };
  EXPECT_TRUE(parse_once(head_of(kHeadBytesMax - 1)).is_done());
  EXPECT_TRUE(parse_once(head_of(kHeadBytesMax)).is_done());
  const RequestParser::Outcome outcome = parse_once(head_of(kHeadBytesMax + 1));
  ASSERT_TRUE(outcome.is_failed());
  EXPECT_EQ(outcome.error(), RequestError::HeadTooLarge);
}

TEST(HttpRequest, EndlessFirstLineIsRefusedAtTheLimit) {
  const std::string line = "GET /" + std::string(kHeadBytesMax, 'a');
  EXPECT_TRUE(parse_once(std::string_view(line).substr(0, kHeadBytesMax - 1)).is_need_more());
  const RequestParser::Outcome outcome =
      parse_once(std::string_view(line).substr(0, kHeadBytesMax));
  ASSERT_TRUE(outcome.is_failed());
  EXPECT_EQ(outcome.error(), RequestError::HeadTooLarge);
}

TEST(HttpRequest, BodyMayHave1MiBAndNotOneByteMore) {
  const auto post_of = [](std::size_t bytes) {
    return "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(bytes) + "\r\n\r\n" +
           std::string(bytes, 'b');
  };
  for (const std::size_t bytes : {kBodyBytesMax - 1, kBodyBytesMax}) {
    const std::string stream = post_of(bytes);
    const RequestParser::Outcome outcome = parse_once(stream);
    ASSERT_TRUE(outcome.is_done());
    EXPECT_EQ(outcome.value().body.size(), bytes);
  }
  const RequestParser::Outcome outcome = parse_once(post_of(kBodyBytesMax + 1));
  ASSERT_TRUE(outcome.is_failed());
  EXPECT_EQ(outcome.error(), RequestError::BodyTooLarge);
}

TEST(HttpRequest, PipelinesGiveTheSameUnderEverySplit) {
  const std::string stream =
      std::string(kPlain) +
      "POST /reload?x HTTP/1.1\r\nHost: x\r\nContent-Length: 7\r\n\r\n\r\n\r\nGET" +
      "HEAD / HTTP/1.0\r\n\r\n" + std::string(kPlain);
  ASSERT_EQ(parse_stream(stream, {stream.size()}).size(), 4U);
  expect_same_under_every_split(stream);
}

TEST(HttpRequest, AsksForContinueOnlyWhileTheBodyIsMissing) {
  const std::string stream =
      "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\nab";
  RequestParser parser;
  ASSERT_TRUE(parser.parse(std::string_view(stream).substr(0, stream.size() - 3)).is_need_more());
  EXPECT_FALSE(parser.wants_continue());
  ASSERT_TRUE(parser.parse(std::string_view(stream).substr(0, stream.size() - 2)).is_need_more());
  EXPECT_TRUE(parser.wants_continue());
  ASSERT_TRUE(parser.parse(stream).is_done());
  EXPECT_FALSE(parser.wants_continue());
}

TEST(HttpRequest, EveryErrorHasAStatusAndAText) {
  for (int code = 0; code <= static_cast<int>(RequestError::VersionUnsupported); ++code) {
    const auto error = static_cast<RequestError>(code);
    EXPECT_GE(status_of(error), 400);
    EXPECT_FALSE(text_of(error).empty());
  }
  EXPECT_EQ(status_of(RequestError::HeadTooLarge), 431);
  EXPECT_EQ(status_of(RequestError::BodyTooLarge), 413);
  EXPECT_EQ(status_of(RequestError::CodingUnsupported), 501);
  EXPECT_EQ(status_of(RequestError::VersionUnsupported), 505);
}

}  // namespace
}  // namespace kvferry::http
