// Replies of backends of scripts: pieces give what the whole gives, chunks are parts of what was
// given, and what is a reply stays one when it is read again.
//
// Byte 0 chooses a reply to one key or a wide one, byte 1 the cuts; the rest is what a backend
// sends.
#include "protocol/memcache/any_reply_parser.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "fuzz/fuzz_support.h"

namespace kvferry::memcache {
namespace {

/// Longer inputs are not also fed in single bytes, which copies the square of their size.
constexpr std::size_t kBytewiseMax = 512;

using fuzz::PieceSizes;
using fuzz::require;

struct Outcome {
  AnyReplyError error = AnyReplyError::None;
  bool is_complete = false;
  ReplyCode code = ReplyCode::None;
  std::string taken;
};

/// Takes the chunks that `held` has now. False when the reply is over, or there is none.
bool take_chunks(AnyReplyParser& parser, std::string& held, Outcome& outcome) {
  while (!held.empty()) {
    // Of its exact size and elsewhere at each call, so that reading beyond it is found.
    const auto copy = std::make_unique<char[]>(held.size());
    std::memcpy(copy.get(), held.data(), held.size());
    const auto parsed = parser.next({copy.get(), held.size()});
    if (parsed.is_need_more()) {
      return true;
    }
    if (parsed.is_failed()) {
      outcome.error = parsed.error();
      require(outcome.error != AnyReplyError::None && parser.failed_at() <= held.size());
      return false;
    }
    const ReplyChunk& chunk = parsed.value();
    require(chunk.size_bytes > 0 && chunk.size_bytes <= held.size());
    require(chunk.is_first == outcome.taken.empty() && chunk.code != ReplyCode::None);
    require(chunk.is_first || chunk.code == outcome.code);
    outcome.code = chunk.code;
    outcome.taken.append(held, 0, chunk.size_bytes);
    held.erase(0, chunk.size_bytes);
    if (chunk.is_last) {
      outcome.is_complete = true;
      return false;
    }
  }
  return true;
}

Outcome play(std::string_view stream, bool is_wide, std::uint8_t seed) {
  Outcome outcome;
  AnyReplyParser parser;
  PieceSizes sizes(seed);
  std::string held;
  parser.start(is_wide);
  while (!stream.empty()) {
    const std::size_t size = sizes.next(stream.size());
    held += stream.substr(0, size);
    stream.remove_prefix(size);
    if (!take_chunks(parser, held, outcome)) {
      break;
    }
  }
  return outcome;
}

void require_equal(const Outcome& one, const Outcome& other) {
  require(one.error == other.error && one.is_complete == other.is_complete);
  // Chunks before a failure depend on the cuts.
  if (one.error == AnyReplyError::None) {
    require(one.code == other.code && one.taken == other.taken);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) {
    return 0;
  }
  const bool is_wide = (data[0] & 1U) != 0;
  const std::string stream(data + 2, data + size);
  const Outcome whole = play(stream, is_wide, 0);
  require_equal(play(stream, is_wide, data[1]), whole);
  if (size < kBytewiseMax) {
    require_equal(play(stream, is_wide, 1), whole);
  }
  if (whole.is_complete) {
    const Outcome again = play(whole.taken, is_wide, 0);
    require(again.is_complete && again.taken == whole.taken);
  }
  return 0;
}

}  // namespace kvferry::memcache
