// Replies of Redis servers: pieces give what the whole gives, and every byte is taken once.
//
// Byte 0 is not used, byte 1 chooses the cuts; the rest is what a server sends.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "fuzz/fuzz_support.h"
#include "protocol/resp/reply_scanner.h"

namespace kvferry::resp {
namespace {

using fuzz::PieceSizes;
using fuzz::require;
using State = ReplyScanner::State;

/// A reply that has ended, or what is no reply.
struct Event {
  State state;
  char type;
  std::size_t end_at;  // Position in the stream.
  bool operator==(const Event&) const = default;
};

struct NoLimits {};
NoLimits limits_of(std::uint8_t /*byte*/) {
  return {};
}

class Player {
 public:
  explicit Player(const NoLimits& /*limits*/) {}

  std::vector<Event> play(std::string_view stream, PieceSizes sizes) {
    while (!stream.empty()) {
      std::string_view piece = stream.substr(0, sizes.next(stream.size()));
      stream.remove_prefix(piece.size());
      while (!piece.empty()) {
        const ReplyScanner::Scan found = scanner_.scan(piece);
        require(found.taken_bytes > 0 && found.taken_bytes <= piece.size());
        require(found.state != State::More || found.taken_bytes == piece.size());
        require(scanner_.is_between() == (found.state == State::End));
        at_ += found.taken_bytes;
        piece.remove_prefix(found.taken_bytes);
        if (found.state == State::Bad) {
          events_.push_back({.state = found.state, .type = 0, .end_at = 0});
          return events_;
        }
        if (found.state == State::End) {
          events_.push_back({.state = found.state, .type = scanner_.type(), .end_at = at_});
        }
      }
    }
    return events_;
  }

 private:
  ReplyScanner scanner_;
  std::vector<Event> events_;
  std::size_t at_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::require_same_in_pieces<Player>(&limits_of, data, size);
  return 0;
}

}  // namespace kvferry::resp
