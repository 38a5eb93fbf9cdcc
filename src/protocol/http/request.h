// RequestParser: HTTP/1.1 requests from a stream of bytes, strictly.
//
// Source:    RFC 9112 (message syntax), RFC 9110 section 5 (fields). A subset: no transfer codings,
//            no line folding, CR LF line ends only, origin-form targets ("/path?query") only.
//            What two programs could frame differently is refused, never guessed.
// Units:     bytes; the head is everything up to and including its empty line.
// Lifetime:  views of a Request point into the bytes given to the parse() that made it.
// Errors:    RequestError. The stream cannot be resynchronised: answer status_of(), then close.
// Threads:   none of its own; one parser a connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/parsed.h"

namespace kvferry::http {

inline constexpr std::size_t kHeadBytesMax = std::size_t{8} * 1024;
inline constexpr std::size_t kBodyBytesMax = std::size_t{1} << 20;

enum class RequestError : std::uint8_t {
  BadRequestLine,
  BadField,            // A header line that is none, or a control character in it.
  BadHost,             // Host is missing in HTTP/1.1, or there are two.
  BadLength,           // Content-Length is no number, or there are two.
  HeadTooLarge,        // More than kHeadBytesMax.
  BodyTooLarge,        // Content-Length above kBodyBytesMax.
  CodingUnsupported,   // Any Transfer-Encoding.
  VersionUnsupported,  // Neither HTTP/1.0 nor HTTP/1.1.
};

/// Status code of the answer to a broken request.
int status_of(RequestError error) noexcept;
/// What was wrong, as a sentence without a period.
std::string_view text_of(RequestError error) noexcept;

struct Request {
  std::string_view method;  // Any token; case matters.
  std::string_view path;    // Starts with '/'; percent signs are not decoded.
  std::string_view query;   // What follows '?', without it.
  std::string_view fields;  // All header lines, each with its CR LF.
  std::string_view body;
  std::size_t size_bytes = 0;  // Of head and body.
  bool is_http10 = false;
  bool keep_alive = true;
  bool expects_continue = false;

  /// Value of the first header line called `name` (any case), without the blanks around it.
  std::optional<std::string_view> field(std::string_view name) const noexcept;
};

class RequestParser {
 public:
  using Outcome = base::Parsed<Request, RequestError>;

  /// `bytes` is everything received since the end of the last request, the bytes of earlier calls
  /// included. After a request is done the parser expects the next one at `size_bytes`. A slow
  /// sender costs linear time: bytes seen before are not searched again.
  Outcome parse(std::string_view bytes) noexcept;

  /// True once a head with "Expect: 100-continue" is complete and its body is not.
  bool wants_continue() const noexcept { return wants_continue_; }

 private:
  std::size_t searched_bytes_ = 0;  // No end of head starts before this.
  std::size_t total_bytes_ = 0;     // Of head and body; 0 while the head is not complete.
  bool is_line_checked_ = false;
  bool wants_continue_ = false;
};

}  // namespace kvferry::http
