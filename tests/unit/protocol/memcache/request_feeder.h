// Feeds a RequestParser as a session does, and tells in words what it made of the bytes. The bytes
// lie in a new allocation of their exact size at each call, so that a sanitizer sees every read
// outside of them and every view that outlived them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/memcache/request_parser.h"
#include "protocol/memcache/token_walker.h"
#include "tests/support/splitter.h"

namespace kvferry::memcache {

/// Uses, tells and forgets like a session.
class RequestFeeder {
 public:
  explicit RequestFeeder(const ParserLimits& limits) : parser_(limits) {}

  void feed(std::string_view piece) {
    held_ += piece;
    while (!is_closed_ && take_step()) {
    }
  }

  /// One entry a request: "get k", "set k =value", "failed KeyTooLong"...
  const std::vector<std::string>& told() const { return told_; }
  std::string_view left_over() const { return held_; }
  std::uint64_t scanned_bytes() const { return parser_.scanned_bytes_for_test(); }

 private:
  bool take_step() {
    const auto swallowed =
        static_cast<std::size_t>(std::min<std::uint64_t>(swallow_bytes_, held_.size()));
    held_.erase(0, swallowed);
    swallow_bytes_ -= swallowed;
    if (swallow_bytes_ != 0 || held_.empty()) {
      return false;
    }
    const auto copy = std::make_unique<char[]>(held_.size());
    std::memcpy(copy.get(), held_.data(), held_.size());
    const std::string_view bytes(copy.get(), held_.size());
    const auto parsed = parser_.parse(bytes);
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
    held_.erase(0, request.size_bytes);
    swallow_bytes_ = request.has_complete_value ? 0 : request.value_bytes + kValueEndBytes;
  }

  void on_failure(const ParseFailure& failure) {
    is_closed_ = closes_connection(failure.error);
    if (failure.error != RequestError::None) {
      std::string text(error_line(failure.error, ErrorWords::Proxy));
      text = is_closed_ ? "closed" : text.substr(0, text.size() - kValueEndBytes);
      text += failure.noreply ? " (noreply)" : "";
      told_.push_back(text);
    }
    held_.erase(0, failure.size_bytes);
    swallow_bytes_ = failure.skip_bytes;
  }

  RequestParser parser_;
  std::string held_;
  std::uint64_t swallow_bytes_ = 0;
  std::vector<std::string> told_;
  bool is_closed_ = false;
};

inline std::vector<std::string> tell(const test::Pieces& pieces, const ParserLimits& limits = {}) {
  RequestFeeder feeder(limits);
  for (const std::string_view piece : pieces) {
    feeder.feed(piece);
  }
  return feeder.told();
}

}  // namespace kvferry::memcache
