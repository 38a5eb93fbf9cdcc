// ArrayWalker: where the elements of an array end, in bytes that come in any pieces.
//
//   *3\r\n $1\r\na\r\n :2\r\n *1\r\n+x\r\n      a Head of 3, then 3 Elements, then Over
//
// Sets count as arrays; the null array has a Head of -1 and no elements. Elements may be arrays.
// Lifetime:  keeps no bytes but those of the head.
// Threads:   one user at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "protocol/resp/reply_scanner.h"

namespace kvferry::resp {

class ArrayWalker {
 public:
  enum class Found : std::uint8_t {
    More,     // All bytes were taken; what they belong to goes on.
    Head,     // The line with the count() ends.
    Element,  // An element ends.
    Bad,      // No array, or bytes behind its end.
  };
  struct Step {
    Found found;
    std::size_t taken_bytes;
  };

  /// Goes on with `bytes`, which are not empty, up to the next thing that ends.
  Step next(std::string_view bytes) noexcept;

  /// Elements of the array, once its Head was found; -1 for null.
  std::int64_t count() const noexcept { return count_; }
  /// The Head was found.
  bool has_head() const noexcept { return is_counted_; }
  /// The last element has ended.
  bool is_over() const noexcept { return is_counted_ && left_ == 0; }

 private:
  Step take_head(std::string_view bytes) noexcept;
  bool read_head(std::string_view line) noexcept;

  ReplyScanner scanner_;
  std::array<char, 24> head_{};  // The type, a sign and 19 digits, "\r\n".
  std::size_t head_bytes_ = 0;
  std::int64_t count_ = 0;
  std::int64_t left_ = 0;
  bool is_counted_ = false;
};

}  // namespace kvferry::resp
