// memcached replies: pieces give what the whole gives, chunks hold what they promise, and the
// scanner of a merge finds the same items in them.
//
// Byte 0 chooses the kind of reply, byte 1 the cuts; the rest is what a backend sends.
#include "protocol/memcache/reply_parser.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/fuzz_support.h"
#include "protocol/memcache/value_scanner.h"

namespace kvferry::memcache {
namespace {

/// Longer inputs are not also fed in single bytes, which copies the square of their size.
constexpr std::size_t kBytewiseMax = 512;

using fuzz::is_inside;
using fuzz::PieceSizes;
using fuzz::require;

struct Outcome {
  ReplyError error = ReplyError::None;
  bool is_complete = false;
  ReplyCode code = ReplyCode::None;
  std::string taken;
  std::vector<std::string> keys;
};

/// Bytes of all events must add up to the chunk.
void scan_chunk(ValueScanner& scanner, std::string_view chunk, Outcome& outcome) {
  scanner.feed(chunk);
  std::size_t seen_bytes = 0;
  for (ScanEvent event = scanner.next(); event.kind != ScanEvent::Kind::NeedChunk;
       event = scanner.next()) {
    require(is_inside(event.bytes, chunk) && is_inside(event.key, event.bytes));
    require(!event.bytes.empty());
    seen_bytes += event.bytes.size();
    if (event.kind == ScanEvent::Kind::Item) {
      require(event.total_bytes >= event.bytes.size() && !event.key.empty());
      outcome.keys.emplace_back(event.key);
    }
  }
  require(seen_bytes == chunk.size());
}

Outcome play(std::string_view stream, ReplyKind kind, std::uint8_t seed) {
  Outcome outcome;
  ReplyParser parser;
  ValueScanner scanner;
  PieceSizes sizes(seed);
  std::string held;
  parser.start(kind);
  while (!stream.empty()) {
    const std::size_t size = sizes.next(stream.size());
    held += stream.substr(0, size);
    stream.remove_prefix(size);
    while (true) {
      const std::string copy = held;  // Elsewhere at each call.
      const auto parsed = parser.next(copy);
      if (parsed.is_need_more()) {
        break;
      }
      if (parsed.is_failed()) {
        outcome.error = parsed.error();
        require(outcome.error != ReplyError::None);
        return outcome;
      }
      const ReplyChunk& chunk = parsed.value();
      require(chunk.size_bytes > 0 && chunk.size_bytes <= copy.size());
      require(chunk.is_first == outcome.taken.empty() && chunk.code != ReplyCode::None);
      require(chunk.is_first || chunk.code == outcome.code);
      const std::string_view bytes = std::string_view(copy).substr(0, chunk.size_bytes);
      outcome.code = chunk.code;
      outcome.taken += bytes;
      if (kind == ReplyKind::Retrieval) {
        scan_chunk(scanner, bytes, outcome);
      }
      held.erase(0, chunk.size_bytes);
      if (chunk.is_last) {
        outcome.is_complete = true;
        return outcome;
      }
    }
  }
  return outcome;
}

void require_equal(const Outcome& one, const Outcome& other) {
  require(one.error == other.error && one.is_complete == other.is_complete);
  // Chunks before a failure depend on the cuts.
  if (one.error == ReplyError::None) {
    require(one.code == other.code && one.taken == other.taken && one.keys == other.keys);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) {
    return 0;
  }
  const auto kind = static_cast<ReplyKind>(data[0] % 3);
  const std::string stream(data + 2, data + size);
  const Outcome whole = play(stream, kind, 0);
  require_equal(play(stream, kind, data[1]), whole);
  if (size < kBytewiseMax) {
    require_equal(play(stream, kind, 1), whole);
  }
  if (whole.is_complete) {
    const Outcome again = play(whole.taken, kind, 0);
    require(again.is_complete && again.taken == whole.taken);
  }
  return 0;
}

}  // namespace kvferry::memcache
