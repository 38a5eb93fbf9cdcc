// HeldStream: the bytes that a session holds of what has come: pieces are added, requests consumed,
// values that nobody wants swallowed.
//
// Threads: a value; one user at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kvferry::test {

class HeldStream {
 public:
  /// Adds `piece`, then calls `step()` while there is something to look at and it returns true.
  template <typename Step>
  void feed(std::string_view piece, Step step) {
    held_ += piece;
    while (!is_closed_ && swallow() && step()) {
    }
  }

  std::string_view held() const { return held_; }
  /// Takes `size_bytes` away, and `skip_bytes` behind them as they come.
  void consume(std::size_t size_bytes, std::uint64_t skip_bytes) {
    held_.erase(0, size_bytes);
    swallow_bytes_ = skip_bytes;
    position_ += size_bytes + skip_bytes;
  }
  /// Nothing is looked at any more.
  void close() { is_closed_ = true; }
  bool is_closed() const { return is_closed_; }
  /// Behind what was consumed, from the beginning of the stream.
  std::uint64_t position() const { return position_; }

 private:
  /// Whether anything is left to be looked at.
  bool swallow() {
    const auto swallowed =
        static_cast<std::size_t>(std::min<std::uint64_t>(swallow_bytes_, held_.size()));
    held_.erase(0, swallowed);
    swallow_bytes_ -= swallowed;
    return swallow_bytes_ == 0 && !held_.empty();
  }

  std::string held_;
  std::uint64_t swallow_bytes_ = 0;
  std::uint64_t position_ = 0;
  bool is_closed_ = false;
};

}  // namespace kvferry::test
