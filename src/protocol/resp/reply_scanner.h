// ReplyScanner: finds where the replies of a Redis server end, of both versions of the protocol.
//
// It is given each byte once, in pieces of any size, and keeps none: what is scanned can be passed
// on at once. An attribute (RESP3) counts as the begin of the reply that it describes. A push is a
// reply of its own, with type() '>', which answers no request.
// Source:    redis.io, "Redis serialization protocol specification".
// Memory:    a counter for each level of nesting, at most kNestingMax.
// Threads:   one user at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kvferry::resp {

inline constexpr std::size_t kNestingMax = 128;
/// A simple string, an error, a number. Bulk strings are as long as they say.
inline constexpr std::size_t kReplyLineBytesMax = std::size_t{64} * 1024;
/// Elements of one array, set or push; half as many pairs of a map.
inline constexpr std::int64_t kElementsMax = (std::int64_t{1} << 31) - 1;

class ReplyScanner {
 public:
  enum class State : std::uint8_t {
    More,  // All bytes were taken; the reply goes on.
    End,   // It ends with the last byte that was taken.
    Bad,   // It is no reply; nobody knows where the next one begins.
  };
  struct Scan {
    State state;
    std::size_t taken_bytes;
  };

  /// Goes on with `bytes`. After End the next call begins the next reply; after Bad there is none.
  Scan scan(std::string_view bytes) noexcept;

  /// The first byte of the reply that is being scanned, or has just ended: "+-:$*_,#!=(%~>".
  char type() const noexcept { return type_; }
  /// No byte of the next reply was seen.
  bool is_between() const noexcept { return is_between_; }

 private:
  enum class Phase : std::uint8_t { Type, Line, Number, Bulk, BulkEnd };
  /// An aggregate that has begun.
  struct Level {
    std::int64_t left;  // Elements that have not ended.
    bool is_attribute;
  };
  enum class Step : std::uint8_t { Go, End, Bad };

  Step take(std::string_view bytes, std::size_t& at) noexcept;
  Step take_type(char byte) noexcept;
  Step take_line(std::string_view bytes, std::size_t& at) noexcept;
  Step take_number(char byte) noexcept;
  void take_bulk(std::string_view bytes, std::size_t& at) noexcept;
  Step take_bulk_end(char byte) noexcept;
  void expect_bulk(std::uint64_t bytes) noexcept;
  Step on_number() noexcept;
  Step on_bulk_length(std::int64_t length) noexcept;
  Step on_count(std::int64_t count) noexcept;
  /// An element, or the reply, has ended.
  Step on_element() noexcept;

  Phase phase_ = Phase::Type;
  char type_ = 0;
  char element_type_ = 0;
  char last_byte_ = 0;  // Of the line so far.
  bool is_between_ = true;
  std::uint8_t number_bytes_ = 0;
  /// A sign, 19 digits and the "\r".
  std::array<char, 21> number_{};
  std::size_t line_bytes_ = 0;
  std::uint64_t bulk_left_ = 0;
  std::size_t depth_ = 0;
  std::array<Level, kNestingMax> levels_{};
};

}  // namespace kvferry::resp
