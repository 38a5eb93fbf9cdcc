// memcached requests: pieces give what the whole gives, views stay inside the bytes they came from,
// and what was accepted is accepted again alone.
//
// Byte 0 chooses limits, byte 1 the cuts; the rest is what a client sends.
#include "protocol/memcache/request_parser.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/fuzz_support.h"
#include "protocol/memcache/token_walker.h"
#include "tests/support/held_stream.h"

namespace kvferry::memcache {
namespace {

using fuzz::is_inside;
using fuzz::PieceSizes;
using fuzz::require;

/// What one request came to; equal for every way of cutting.
struct Event {
  Command command = Command::Unknown;
  RequestError error = RequestError::None;
  bool noreply = false;
  bool quiet = false;
  std::uint64_t end_at = 0;  // Position in the stream behind the request.
  std::string key;
  std::string value;
  bool operator==(const Event&) const = default;
};

ParserLimits limits_of(std::uint8_t byte) {
  ParserLimits limits;
  limits.close_on_long_line = (byte & 1) != 0;
  limits.stream_bytes_min = (byte & 2) != 0 ? 8 : limits.stream_bytes_min;
  limits.value_bytes_max = (byte & 4) != 0 ? 16 : limits.value_bytes_max;
  return limits;
}

void check_request(const Request& request, std::string_view bytes, const ParserLimits& limits) {
  require(request.size_bytes > 0 && request.size_bytes <= bytes.size());
  const std::string_view own = bytes.substr(0, request.size_bytes);
  require(is_inside(request.line, own) && is_inside(request.key, request.line) &&
          is_inside(request.keys, request.line) && is_inside(request.value, own));
  require(request.line.ends_with('\n') && request.command != Command::Unknown);
  require(request.value_bytes <= limits.value_bytes_max);
  require(has_key(request.command) == (request.key_count > 0));

  std::uint32_t key_count = 0;
  KeyWalker keys(request.keys);
  for (std::string_view key = keys.next(); !key.empty(); key = keys.next()) {
    ++key_count;
    require(key.size() <= kKeyBytesMax && key.find(' ') == std::string_view::npos);
  }
  require(key_count == request.key_count);

  if (has_value(request.command) && request.has_complete_value) {
    require(request.value.size() == request.value_bytes);
    require(request.size_bytes == request.line.size() + request.value_bytes + kValueEndBytes);
  } else {
    require(request.size_bytes == request.line.size());
  }
  RequestParser alone(limits);
  const auto again = alone.parse(own);
  require(again.is_done() && again.value().size_bytes == request.size_bytes);
}

/// Plays a session: feeds, consumes, swallows.
class Player {
 public:
  explicit Player(const ParserLimits& limits) : limits_(limits), parser_(limits) {}

  std::vector<Event> play(std::string_view stream, PieceSizes sizes) {
    while (!stream.empty() && !stream_.is_closed()) {
      const std::size_t size = sizes.next(stream.size());
      stream_.feed(stream.substr(0, size), [this] { return take_step(); });
      stream.remove_prefix(size);
    }
    return events_;
  }

 private:
  bool take_step() {
    const std::string copy(stream_.held());  // Elsewhere at each call.
    const auto parsed = parser_.parse(copy);
    if (parsed.is_need_more()) {
      return false;
    }
    if (parsed.is_failed()) {
      on_failure(parsed.error());
      return true;
    }
    const Request& request = parsed.value();
    check_request(request, copy, limits_);
    Event event{.command = request.command,
                .noreply = request.noreply,
                .quiet = request.quiet,
                .key = std::string(request.key),
                .value = std::string(request.value)};
    stream_.consume(request.size_bytes,
                    request.has_complete_value ? 0 : request.value_bytes + kValueEndBytes);
    event.end_at = stream_.position();
    events_.push_back(event);
    return true;
  }

  void on_failure(const ParseFailure& failure) {
    require(failure.size_bytes > 0 && failure.size_bytes <= stream_.held().size());
    require(failure.skip_bytes <= kValueBytesMax + kValueEndBytes);
    if (closes_connection(failure.error)) {
      stream_.close();
    }
    Event event{.command = failure.command,
                .error = failure.error,
                .noreply = failure.noreply,
                .key = std::string(failure.key),
                .value = {}};
    stream_.consume(failure.size_bytes, failure.skip_bytes);
    if (failure.error != RequestError::None) {
      event.end_at = stream_.position();
      events_.push_back(event);
    }
  }

  ParserLimits limits_;
  RequestParser parser_;
  test::HeldStream stream_;
  std::vector<Event> events_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::require_same_in_pieces<Player>(&limits_of, data, size);
  return 0;
}

}  // namespace kvferry::memcache
