// What the load generator says and what it expects to hear: requests out, replies in, no sockets.
//
// A value is made from its key, so a reply that reached the wrong request is seen at once.
// Lifetime:  views given to ReplyReader::read() are used during that call only.
// Threads:   one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "load/options.h"

namespace kvferry::load {

/// Keys and values by number. All lengths are those of the options.
class Dataset {
 public:
  explicit Dataset(const Options& options);

  void append_key(std::uint32_t number, std::string& out) const;
  void append_value(std::uint32_t number, std::string& out) const;
  std::string key_of(std::uint32_t number) const;
  static std::uint32_t flags_of(std::uint32_t number) { return number % 1000; }
  bool is_key_of(std::uint32_t number, std::string_view key) const;
  bool is_value_of(std::uint32_t number, std::string_view value) const;

 private:
  std::string_view filler_of(std::uint32_t number) const;

  std::string key_stem_;  // A key without its digits at the end.
  std::string letters_;   // The alphabet, repeated; a value is a window into it.
  std::size_t value_bytes_;
};

/// A request that was sent and is not yet answered.
struct Pending {
  bool is_set = false;
  std::uint64_t sent_ns = 0;
  std::vector<std::uint32_t> keys;
  std::size_t hits = 0;
  std::size_t next_key = 0;  // Where in `keys` the key of the next value is looked for.
};

/// Makes requests of one operation from a seed.
class RequestMaker {
 public:
  RequestMaker(const Options& options, const Dataset& dataset);

  /// Appends one request to `out` and describes it in `pending`; false when nothing is left to
  /// send.
  bool make(std::string& out, Pending& pending);

 private:
  std::uint32_t random();
  std::uint32_t random_key();
  void make_set(std::uint32_t number, std::string& out);

  Operation operation_;
  std::uint32_t keys_;
  std::size_t keys_per_get_;
  std::size_t value_bytes_;
  const Dataset& dataset_;
  std::uint64_t state_;
  std::uint32_t fill_next_ = 0;
};

/// What came out of one step of reading.
enum class ReplyEvent : std::uint8_t {
  NeedMore,  // The bytes end inside a reply.
  Partial,   // A value of a get was read; its END has not come.
  Answered,  // The oldest request is answered.
  Refused,   // The oldest request is answered with an error line.
  Wrong,     // Not an answer to the oldest request; the stream is of no use any more.
};

struct ReplyStep {
  ReplyEvent event = ReplyEvent::NeedMore;
  std::size_t used_bytes = 0;
  std::string_view text;  // The error line, or what is wrong.
};

/// Reads the next piece of the reply to `pending`. With `verify` off only the framing is checked.
ReplyStep read_reply(std::string_view bytes, bool verify, const Dataset& dataset, Pending& pending);

}  // namespace kvferry::load
