// Response: what the admin server answers, and its bytes. (HTTP's own word; "reply" stays the word
// of the data plane.)
//
// Source:    RFC 9112 section 6: every response states its length.
// Threads:   pure functions.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kvferry::http {

struct Response {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body = {};
  /// Further headers. Names and values come from our own code and hold no line ends.
  std::vector<std::pair<std::string, std::string>> fields = {};
};

/// How a response goes onto the connection.
struct ResponseFraming {
  bool keep_alive = true;
  bool is_http10 = false;
  bool is_head = false;  // Answers HEAD: the head alone, with the length that the body would have.
};

/// "OK" for 200; "Unknown" for codes that this program never sends.
std::string_view reason_of(int status) noexcept;

/// Appends the bytes of `response`.
void compose_response(std::string& out, const Response& response, const ResponseFraming& framing);

/// Interim answer to "Expect: 100-continue".
inline constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

}  // namespace kvferry::http
