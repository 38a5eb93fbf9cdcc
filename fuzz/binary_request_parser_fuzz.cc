// Packets of binary clients: pieces give what the whole gives, views stay inside the bytes they
// came from, what was accepted is accepted again alone, and what it becomes in text is read by the
// text parser as what was meant.
//
// Byte 0 chooses limits, byte 1 the cuts; the rest is what a client sends.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/fuzz_support.h"
#include "protocol/memcache/meta_flags.h"
#include "protocol/memcache/request_parser.h"
#include "protocol/memcache_binary/meta_request.h"
#include "tests/support/held_stream.h"

namespace kvferry::memcache_binary {
namespace {

using fuzz::is_inside;
using fuzz::PieceSizes;
using fuzz::require;

/// What one packet came to; equal for every way of cutting.
struct Event {
  Opcode opcode{};
  bool is_failed = false;
  RequestError error = RequestError::NoRequest;
  std::uint32_t opaque = 0;
  std::uint64_t cas = 0;
  std::uint64_t end_at = 0;  // Position in the stream behind the packet.
  std::string text;          // What it is for others.
  bool operator==(const Event&) const = default;
};

memcache::ParserLimits limits_of(std::uint8_t byte) {
  memcache::ParserLimits limits;
  limits.stream_bytes_min = (byte & 1) != 0 ? 8 : limits.stream_bytes_min;
  limits.value_bytes_max = (byte & 2) != 0 ? 16 : limits.value_bytes_max;
  return limits;
}

bool has_text(const Order& order) {
  switch (order.shape) {
    case Shape::Key:
    case Shape::Touch:
    case Shape::Arith:
    case Shape::Storage:
    case Shape::Join:
    case Shape::Flush:
      return true;
    default:
      return false;
  }
}

/// The text of `request`, which the text parser must take for the same.
std::string checked_text(const Request& request, const memcache::ParserLimits& limits) {
  std::string text;
  memcache::Request made;
  if (!has_text(request.order) || !compose_text_request(request, KeyLimit::Wire, text, made)) {
    return {};
  }
  memcache::RequestParser parser(limits);
  const auto parsed = parser.parse(text);
  require(parsed.is_done());
  const memcache::Request& read = parsed.value();
  require(read.command == made.command && read.size_bytes == text.size());
  require(read.line == made.line && read.key == made.key && read.value == made.value);
  require(read.value_bytes == made.value_bytes && read.base64_key == made.base64_key);
  require(read.has_complete_value == made.has_complete_value && !read.quiet && !read.noreply);
  if (memcache::is_meta(read.command)) {
    require(memcache::parse_meta_flags(read).error == memcache::MetaError::None);
  }
  return text;
}

void check_request(const Request& request, std::string_view bytes,
                   const memcache::ParserLimits& limits) {
  require(request.size_bytes >= kHeaderBytes && request.size_bytes <= bytes.size());
  const std::string_view own = bytes.substr(0, request.size_bytes);
  require(is_inside(request.extras, own) && is_inside(request.key, own) &&
          is_inside(request.value, own));
  require(request.key.size() <= memcache::kKeyBytesMax);
  require(request.order.shape != Shape::Unknown);
  require(request.value.size() == (request.has_complete_value ? request.value_bytes : 0));
  require(request.order.shape == Shape::Auth || request.value_bytes <= limits.value_bytes_max);
  const auto again = parse_request(own, limits);
  require(again.is_done() && again.value().size_bytes == request.size_bytes);
}

/// Plays a session: feeds, consumes, swallows.
class Player {
 public:
  explicit Player(const memcache::ParserLimits& limits) : limits_(limits) {}

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
    const auto parsed = parse_request(copy, limits_);
    if (parsed.is_need_more()) {
      return false;
    }
    Event event;
    if (parsed.is_failed()) {
      const ParseFailure& failure = parsed.error();
      require(failure.size_bytes > 0 && failure.size_bytes <= stream_.held().size());
      if (closes_connection(failure.error)) {
        stream_.close();
      }
      event.opcode = failure.opcode;
      event.is_failed = true;
      event.error = failure.error;
      event.opaque = failure.opaque;
      stream_.consume(failure.size_bytes, failure.skip_bytes);
    } else {
      const Request& request = parsed.value();
      check_request(request, copy, limits_);
      event.opcode = request.opcode;
      event.opaque = request.opaque;
      event.cas = request.cas;
      event.text = checked_text(request, limits_);
      stream_.consume(request.size_bytes, request.has_complete_value ? 0 : request.value_bytes);
    }
    event.end_at = stream_.position();
    events_.push_back(event);
    return true;
  }

  memcache::ParserLimits limits_;
  test::HeldStream stream_;
  std::vector<Event> events_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::require_same_in_pieces<Player>(&limits_of, data, size);
  return 0;
}

}  // namespace kvferry::memcache_binary
