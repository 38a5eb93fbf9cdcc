#include "protocol/memcache/request_parser.h"

#include <cstddef>
#include <string_view>

#include "protocol/memcache/number.h"
#include "protocol/memcache/token_walker.h"

namespace kvferry::memcache {
namespace {

/// What a head line says, and what is wrong with it.
struct Head {
  Request request;
  RequestError error = RequestError::None;
  bool has_length = false;  // The announced length was read, so the value can be skipped.
};

constexpr std::string_view kNoreply = "noreply";
/// Shorter lines hold no command, "mn" with a bare line end excepted.
constexpr std::size_t kLineBytesMin = 4;

std::string_view without_trailing_blanks(std::string_view text) {
  while (text.ends_with(' ')) {
    text.remove_suffix(1);
  }
  return text;
}

bool ends_in_noreply(std::string_view text) {
  text = without_trailing_blanks(text);
  if (!text.ends_with('y') || !text.ends_with(kNoreply)) {
    return false;
  }
  return text.size() > kNoreply.size() && text[text.size() - kNoreply.size() - 1] == ' ';
}

bool is_browser_line(std::string_view text) {
  text = without_trailing_blanks(text);
  const std::size_t blank = text.rfind(' ');
  return blank != std::string_view::npos && text.substr(blank + 1).starts_with("HTTP/1.");
}

/// memcached's front lets pass what begins with one of the bytes 'A' to 'z' or a digit; which
/// letters are flags is decided by whoever executes the request.
bool may_begin_flag(char byte) {
  return (byte >= 'A' && byte <= 'z') || (byte >= '0' && byte <= '9');
}

void read_retrieval(TokenWalker words, Head& head) {
  Request& request = head.request;
  if (request.command == Command::Gat || request.command == Command::Gats) {
    // The executor reads it. Lines of any length begin with it, so it has a limit of its own.
    if (words.next().size() > kExptimeBytesMax) {
      head.error = RequestError::BadLine;
      return;
    }
  }
  const std::string_view rest = words.rest();
  request.key = words.next();
  if (request.key.empty()) {
    head.error = RequestError::BadLine;
    return;
  }
  request.keys = rest.substr(static_cast<std::size_t>(request.key.data() - rest.data()));
  for (std::string_view key = request.key; !key.empty(); key = words.next()) {
    ++request.key_count;
    if (key.size() > kKeyBytesMax) {
      head.error = RequestError::KeyTooLong;
      return;
    }
  }
}

/// Takes the key of a command with exactly one.
void take_key(TokenWalker& words, Head& head) {
  Request& request = head.request;
  request.key = words.next();
  request.keys = request.key;
  request.key_count = request.key.empty() ? 0 : 1;
  if (request.key.size() > kKeyBytesMax) {
    head.error = RequestError::KeyTooLong;
  }
}

/// Takes the length of the value. A length out of range is as good as none, as nobody would wait
/// for such a value; an unreadable one outranks what was found wrong before, since then there is
/// nothing to skip.
void take_length(TokenWalker& words, Head& head) {
  head.has_length = read_value_length(words.next_short(), kValueBytesMax, head.request.value_bytes);
  if (!head.has_length) {
    head.error = RequestError::BadLine;
  }
}

void read_storage(TokenWalker words, Head& head) {
  take_key(words, head);
  words.next_short();  // Client flags.
  words.next_short();  // Exptime.
  take_length(words, head);
  head.request.noreply = ends_in_noreply(words.rest());
}

void read_meta_flags(TokenWalker words, std::size_t token_count, Head& head) {
  const std::string_view text = words.rest();
  const char* at = text.data();
  const char* const end = at + text.size();
  bool is_flag_good = true;
  bool is_blank_before = false;
  for (; at != end; ++at) {
    if (*at == ' ') {
      is_blank_before = true;
      continue;
    }
    if (!is_blank_before) {
      continue;
    }
    is_blank_before = false;
    ++token_count;
    is_flag_good = is_flag_good && may_begin_flag(*at);
    head.request.quiet = head.request.quiet || *at == 'q';
    head.request.base64_key = head.request.base64_key || *at == 'b';
  }
  if (head.error != RequestError::None) {
    return;
  }
  if (token_count > kMetaTokensMax) {
    head.error = RequestError::TooManyTokens;
  } else if (!is_flag_good) {
    head.error = RequestError::BadFlag;
  }
}

void read_meta(TokenWalker words, Head& head) {
  if (head.request.command == Command::Mn) {
    return;  // Words after it do not matter.
  }
  take_key(words, head);
  if (head.request.key.empty()) {
    head.error = RequestError::BadLine;
    return;
  }
  std::size_t token_count = 2;
  if (head.request.command == Command::Ms) {
    take_length(words, head);
    ++token_count;
  }
  read_meta_flags(words, token_count, head);
}

/// incr, decr, touch need a word behind the key, delete does not.
void read_single_key(TokenWalker words, std::string_view text, Head& head) {
  take_key(words, head);
  const bool has_enough =
      head.request.command == Command::Delete ? !head.request.key.empty() : !words.next().empty();
  if (!has_enough) {
    head.error = RequestError::BadLine;
  }
  head.request.noreply = ends_in_noreply(text);
}

/// Reads a whole line. `line` includes its line end.
Head read_head(std::string_view line) {
  Head head;
  Request& request = head.request;
  request.line = line;
  const std::string_view text = request.line_text();
  const std::size_t blank = text.substr(0, kLineBytesMax).find(' ');
  const std::string_view word = text.substr(0, blank);
  const TokenWalker words(text.substr(word.size()));

  // The two commands that make up nearly all traffic are told from the others at once.
  if (word == "get") {
    request.command = Command::Get;
    read_retrieval(words, head);
    return head;
  }
  if (word == "set") {
    request.command = Command::Set;
    read_storage(words, head);
    return head;
  }

  request.command = find_command(word);
  if (is_retrieval(request.command)) {
    read_retrieval(words, head);
  } else if (is_storage(request.command)) {
    read_storage(words, head);
  } else if (is_meta(request.command)) {
    read_meta(words, head);
  } else if (has_key(request.command)) {
    read_single_key(words, text, head);
  } else if (request.command != Command::Unknown) {
    request.noreply = ends_in_noreply(text);
  } else if (line.size() < kLineBytesMin) {
    head.error = RequestError::BadLine;
  } else {
    head.error = is_browser_line(text) ? RequestError::NotText : RequestError::UnknownCommand;
  }
  return head;
}

bool begins_retrieval(std::string_view bytes) {
  return bytes.starts_with("get ") || bytes.starts_with("gets ") || bytes.starts_with("gat ") ||
         bytes.starts_with("gats ");
}

/// A refusal of `size_bytes` bytes of which no key could be read.
ParseFailure refusal_of(RequestError error, std::size_t size_bytes) {
  ParseFailure failure;
  failure.error = error;
  failure.size_bytes = size_bytes;
  return failure;
}

constexpr char kBinaryMagic = '\x80';

}  // namespace

base::Parsed<Request, ParseFailure> RequestParser::parse(std::string_view bytes) noexcept {
  if (phase_ == Phase::Value) {
    if (bytes.size() < needed_bytes_) {
      return Outcome::need_more();
    }
    return on_line(bytes, line_bytes_);
  }
  if (phase_ == Phase::LongLine) {
    return on_long_line(bytes);
  }
  if (!bytes.empty() && bytes.front() == kBinaryMagic) {
    return Outcome::failed(refusal_of(RequestError::NotText, 1));
  }
  const std::string_view window = bytes.size() <= kLineBytesMax || !begins_retrieval(bytes)
                                      ? bytes.substr(0, kLineBytesMax)
                                      : bytes.substr(0, kGetLineBytesMax);
  const std::size_t newline = window.find('\n', searched_bytes_);
  if (newline == std::string_view::npos) {
    scanned_bytes_ += window.size() - searched_bytes_;
    return on_line_without_end(bytes);
  }
  scanned_bytes_ += newline + 1 - searched_bytes_;
  searched_bytes_ = 0;
  return on_line(bytes, newline + 1);
}

RequestParser::Outcome RequestParser::on_line(std::string_view bytes,
                                              std::size_t line_bytes) noexcept {
  Head head = read_head(bytes.substr(0, line_bytes));
  Request& request = head.request;
  request.size_bytes = line_bytes;
  phase_ = Phase::Line;
  if (head.error == RequestError::None && request.value_bytes > limits_.value_bytes_max) {
    head.error = RequestError::TooLarge;
  }
  if (head.error == RequestError::None) [[likely]] {
    return has_value(request.command) ? finish_value(bytes, request) : Outcome::done(request);
  }
  return Outcome::failed(ParseFailure{
      .error = head.error,
      .command = request.command,
      .noreply = request.noreply,
      .key = request.key,
      .size_bytes = line_bytes,
      .skip_bytes = head.has_length ? request.value_bytes + kValueEndBytes : 0,
  });
}

RequestParser::Outcome RequestParser::finish_value(std::string_view bytes,
                                                   Request& request) noexcept {
  const std::size_t line_bytes = request.size_bytes;
  if (request.value_bytes > limits_.stream_bytes_min) {
    request.has_complete_value = false;
    return Outcome::done(request);
  }
  // No overflow: both limits are far below the range of size_t.
  const std::size_t value_bytes = static_cast<std::size_t>(request.value_bytes);
  const std::size_t needed_bytes = line_bytes + value_bytes + kValueEndBytes;
  if (bytes.size() < needed_bytes) {
    phase_ = Phase::Value;
    line_bytes_ = line_bytes;
    needed_bytes_ = needed_bytes;
    return Outcome::need_more();
  }
  if (bytes[needed_bytes - 2] != '\r' || bytes[needed_bytes - 1] != '\n') {
    return Outcome::failed(ParseFailure{.error = RequestError::BadDataChunk,
                                        .command = request.command,
                                        .noreply = request.noreply,
                                        .key = request.key,
                                        .size_bytes = needed_bytes});
  }
  request.value = bytes.substr(line_bytes, value_bytes);
  request.size_bytes = needed_bytes;
  return Outcome::done(request);
}

RequestParser::Outcome RequestParser::on_line_without_end(std::string_view bytes) noexcept {
  const std::size_t bytes_max =
      bytes.size() < kLineBytesMax || !begins_retrieval(bytes) ? kLineBytesMax : kGetLineBytesMax;
  if (bytes.size() < bytes_max) {
    searched_bytes_ = bytes.size();
    return Outcome::need_more();
  }
  searched_bytes_ = 0;
  if (limits_.close_on_long_line) {
    return Outcome::failed(refusal_of(RequestError::Unterminated, bytes_max));
  }
  // The line end may lie in bytes that came with the excess; the next call finds it.
  phase_ = Phase::LongLine;
  return Outcome::failed(refusal_of(RequestError::LineTooLong, bytes_max));
}

RequestParser::Outcome RequestParser::on_long_line(std::string_view bytes) noexcept {
  if (bytes.empty()) {
    return Outcome::need_more();
  }
  const std::size_t newline = bytes.find('\n');
  const std::size_t size_bytes = newline == std::string_view::npos ? bytes.size() : newline + 1;
  scanned_bytes_ += size_bytes;
  if (newline != std::string_view::npos) {
    phase_ = Phase::Line;
  }
  return Outcome::failed(refusal_of(RequestError::None, size_bytes));
}

}  // namespace kvferry::memcache
