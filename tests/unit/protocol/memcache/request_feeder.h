// Feeds a RequestParser as a session does, and tells in words what it made of the bytes. The bytes
// lie in a new allocation of their exact size at each call, so that a sanitizer sees every read
// outside of them and every view that outlived them.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/memcache/request_parser.h"
#include "protocol/memcache/token_walker.h"
#include "tests/support/held_stream.h"
#include "tests/support/splitter.h"

namespace kvferry::memcache {

/// Uses, tells and forgets like a session.
class RequestFeeder {
 public:
  explicit RequestFeeder(const ParserLimits& limits) : parser_(limits) {}

  void feed(std::string_view piece) {
    stream_.feed(piece, [this] { return take_step(); });
  }

  /// One entry a request: "get k", "set k =value", "failed KeyTooLong"...
  const std::vector<std::string>& told() const { return told_; }
  std::string_view left_over() const { return stream_.held(); }
  std::uint64_t scanned_bytes() const { return parser_.scanned_bytes_for_test(); }

 private:
  bool take_step() {
    const std::string_view held = stream_.held();
    const auto copy = std::make_unique<char[]>(held.size());
    std::memcpy(copy.get(), held.data(), held.size());
    const auto parsed = parser_.parse({copy.get(), held.size()});
    if (parsed.is_need_more()) {
      return false;
    }
    if (parsed.is_done()) {
      on_request(parsed.value());
    } else {
      on_failure(parsed.error());
    }
    return true;
  }

  void on_request(const Request& request) {
    std::string text(command_name(request.command));
    KeyWalker walker(request.keys);
    for (std::string_view key = walker.next(); !key.empty(); key = walker.next()) {
      text.append(" ").append(key);
    }
    text += request.noreply ? " noreply" : "";
    text += request.quiet ? " quiet" : "";
    text += request.base64_key ? " base64" : "";
    if (has_value(request.command)) {
      text.append(request.has_complete_value ? " =" : " streamed ");
      text.append(request.has_complete_value ? std::string(request.value)
                                             : std::to_string(request.value_bytes));
    }
    told_.push_back(text);
    stream_.consume(request.size_bytes,
                    request.has_complete_value ? 0 : request.value_bytes + kValueEndBytes);
  }

  void on_failure(const ParseFailure& failure) {
    if (closes_connection(failure.error)) {
      stream_.close();
    }
    if (failure.error != RequestError::None) {
      std::string text(error_line(failure.error, ErrorWords::Proxy));
      text = stream_.is_closed() ? "closed" : text.substr(0, text.size() - kValueEndBytes);
      text += failure.noreply ? " (noreply)" : "";
      told_.push_back(text);
    }
    stream_.consume(failure.size_bytes, failure.skip_bytes);
  }

  RequestParser parser_;
  test::HeldStream stream_;
  std::vector<std::string> told_;
};

inline std::vector<std::string> tell(const test::Pieces& pieces, const ParserLimits& limits = {}) {
  RequestFeeder feeder(limits);
  for (const std::string_view piece : pieces) {
    feeder.feed(piece);
  }
  return feeder.told();
}

}  // namespace kvferry::memcache
