#include "protocol/http/request.h"

#include <algorithm>
#include <array>

namespace kvferry::http {

namespace {

using Outcome = RequestParser::Outcome;

constexpr std::string_view kLineEnd = "\r\n";
constexpr std::string_view kHeadEnd = "\r\n\r\n";
constexpr std::string_view kTokenMarks = "!#$%&'*+-.^_`|~";

struct ErrorInfo {
  int status;
  std::string_view text;
};

/// In the order of RequestError.
constexpr std::array<ErrorInfo, 8> kErrors = {{
    {400, "the request line is not METHOD /path HTTP/1.1"},
    {400, "a header line is malformed"},
    {400, "exactly one Host header is required"},
    {400, "Content-Length is not one decimal number"},
    {431, "the request head is larger than 8 KiB"},
    {413, "the request body is larger than 1 MiB"},
    {501, "Transfer-Encoding is not supported; send Content-Length"},
    {505, "only HTTP/1.0 and HTTP/1.1 are spoken here"},
}};
static_assert(static_cast<std::size_t>(RequestError::VersionUnsupported) + 1 == kErrors.size());

constexpr bool is_digit(char byte) noexcept {
  return byte >= '0' && byte <= '9';
}

constexpr char to_lower(char byte) noexcept {
  return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte + ('a' - 'A')) : byte;
}

bool equals_any_case(std::string_view left, std::string_view right) noexcept {
  return std::ranges::equal(left, right, {}, to_lower, to_lower);
}

/// RFC 9110 section 5.6.2.
bool is_token(std::string_view text) noexcept {
  return !text.empty() && std::ranges::all_of(text, [](char byte) {
    const char lower = to_lower(byte);
    return is_digit(byte) || (lower >= 'a' && lower <= 'z') ||
           kTokenMarks.find(byte) != std::string_view::npos;
  });
}

bool is_target(std::string_view text) noexcept {
  return text.starts_with('/') && std::ranges::all_of(text, [](char byte) {
           return byte > 0x20 && byte < 0x7F && byte != '#';
         });
}

bool is_field_value(std::string_view text) noexcept {
  return std::ranges::all_of(text, [](char byte) {
    const auto code = static_cast<std::uint8_t>(byte);
    return (code >= 0x20 && code != 0x7F) || byte == '\t';
  });
}

std::string_view trim_blanks(std::string_view text) noexcept {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// Cuts the text up to `mark` from the front of `rest`; all of it when there is no mark.
std::string_view take_until(std::string_view& rest, std::string_view mark) noexcept {
  const std::size_t end = rest.find(mark);
  const std::string_view taken = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + mark.size());
  return taken;
}

/// Fills what the request line says; `line` is without its line end.
std::optional<RequestError> parse_request_line(std::string_view line, Request& request) noexcept {
  request.method = take_until(line, " ");
  std::string_view target = take_until(line, " ");
  if (!is_token(request.method) || !is_target(target)) {
    return RequestError::BadRequestLine;
  }
  const bool is_version = line.size() == 8 && line.starts_with("HTTP/") && is_digit(line[5]) &&
                          line[6] == '.' && is_digit(line[7]);
  if (!is_version) {
    return RequestError::BadRequestLine;
  }
  request.is_http10 = line == "HTTP/1.0";
  if (!request.is_http10 && line != "HTTP/1.1") {
    return RequestError::VersionUnsupported;
  }
  request.path = take_until(target, "?");
  request.query = target;
  return std::nullopt;
}

/// What the header lines say about framing.
struct Framing {
  std::size_t hosts = 0;
  std::optional<std::size_t> body_bytes;
  bool says_close = false;
  bool says_keep_alive = false;
  bool expects_continue = false;
};

std::optional<RequestError> parse_length(std::string_view text, Framing& framing) noexcept {
  if (framing.body_bytes.has_value() || text.empty() || !std::ranges::all_of(text, is_digit)) {
    return RequestError::BadLength;
  }
  std::size_t bytes = 0;
  for (const char digit : text) {
    bytes = bytes * 10 + static_cast<std::size_t>(digit - '0');
    if (bytes > kBodyBytesMax) {
      return RequestError::BodyTooLarge;
    }
  }
  framing.body_bytes = bytes;
  return std::nullopt;
}

void parse_connection(std::string_view options, Framing& framing) noexcept {
  while (!options.empty()) {
    const std::string_view option = trim_blanks(take_until(options, ","));
    framing.says_close = framing.says_close || equals_any_case(option, "close");
    framing.says_keep_alive = framing.says_keep_alive || equals_any_case(option, "keep-alive");
  }
}

std::optional<RequestError> parse_field(std::string_view line, Framing& framing) noexcept {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) {
    return RequestError::BadField;
  }
  const std::string_view name = line.substr(0, colon);
  const std::string_view value = trim_blanks(line.substr(colon + 1));
  // A name with a blank in it is no token; that refuses folded lines as well.
  if (!is_token(name) || !is_field_value(value)) {
    return RequestError::BadField;
  }
  if (equals_any_case(name, "content-length")) {
    return parse_length(value, framing);
  }
  if (equals_any_case(name, "transfer-encoding")) {
    return RequestError::CodingUnsupported;
  }
  if (equals_any_case(name, "host")) {
    return ++framing.hosts > 1 ? std::optional(RequestError::BadHost) : std::nullopt;
  }
  if (equals_any_case(name, "connection")) {
    parse_connection(value, framing);
  } else if (equals_any_case(name, "expect")) {
    framing.expects_continue = equals_any_case(value, "100-continue");
  }
  return std::nullopt;
}

/// Parses a complete head. `request.size_bytes` then counts the announced body too.
std::optional<RequestError> parse_head(std::string_view head, Request& request) noexcept {
  std::string_view rest = head;
  if (auto error = parse_request_line(take_until(rest, kLineEnd), request)) {
    return error;
  }
  request.fields = rest.substr(0, rest.size() - kLineEnd.size());
  Framing framing;
  for (std::string_view lines = request.fields; !lines.empty();) {
    if (auto error = parse_field(take_until(lines, kLineEnd), framing)) {
      return error;
    }
  }
  if (framing.hosts == 0 && !request.is_http10) {
    return RequestError::BadHost;
  }
  request.keep_alive = !framing.says_close && (!request.is_http10 || framing.says_keep_alive);
  request.expects_continue = framing.expects_continue && !request.is_http10;
  request.size_bytes = head.size() + framing.body_bytes.value_or(0);
  return std::nullopt;
}

/// Checks the first line as soon as it is there, so that somebody who talks another protocol to us
/// is told at once.
std::optional<RequestError> check_first_line(std::string_view bytes, std::size_t newline) noexcept {
  if (newline == 0 || bytes[newline - 1] != '\r') {
    return RequestError::BadRequestLine;
  }
  Request scratch;
  return parse_request_line(bytes.substr(0, newline - 1), scratch);
}

}  // namespace

int status_of(RequestError error) noexcept {
  return kErrors[static_cast<std::size_t>(error)].status;
}

std::string_view text_of(RequestError error) noexcept {
  return kErrors[static_cast<std::size_t>(error)].text;
}

std::optional<std::string_view> Request::field(std::string_view name) const noexcept {
  for (std::string_view lines = fields; !lines.empty();) {
    std::string_view value = take_until(lines, kLineEnd);
    if (equals_any_case(take_until(value, ":"), name)) {
      return trim_blanks(value);
    }
  }
  return std::nullopt;
}

Outcome RequestParser::parse(std::string_view bytes) noexcept {
  const std::string_view head_space = bytes.substr(0, kHeadBytesMax);
  if (!is_line_checked_) {
    const std::size_t newline = head_space.find('\n', searched_bytes_);
    if (newline == std::string_view::npos) {
      searched_bytes_ = head_space.size();
      return head_space.size() < kHeadBytesMax ? Outcome::need_more()
                                               : Outcome::failed(RequestError::HeadTooLarge);
    }
    if (const auto error = check_first_line(bytes, newline)) {
      return Outcome::failed(*error);
    }
    is_line_checked_ = true;
    searched_bytes_ = newline - 1;  // The empty line may follow directly.
  }

  if (total_bytes_ != 0 && bytes.size() < total_bytes_) {
    return Outcome::need_more();
  }
  const std::size_t end = head_space.find(kHeadEnd, searched_bytes_);
  if (end == std::string_view::npos) {
    searched_bytes_ = std::max(searched_bytes_, head_space.size() - (kHeadEnd.size() - 1));
    return head_space.size() < kHeadBytesMax ? Outcome::need_more()
                                             : Outcome::failed(RequestError::HeadTooLarge);
  }
  searched_bytes_ = end;

  const std::size_t head_bytes = end + kHeadEnd.size();
  Request request;
  if (const auto error = parse_head(bytes.substr(0, head_bytes), request)) {
    return Outcome::failed(*error);
  }
  if (bytes.size() < request.size_bytes) {
    total_bytes_ = request.size_bytes;
    wants_continue_ = request.expects_continue;
    return Outcome::need_more();
  }
  request.body = bytes.substr(head_bytes, request.size_bytes - head_bytes);
  *this = RequestParser();
  return Outcome::done(request);
}

}  // namespace kvferry::http
