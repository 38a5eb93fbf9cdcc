// SplitGet: a get with several keys, cut into one request a key, and its answers put together again
// in key order.
//
// Routes decide for one key at a time. Each part looks like a request of its own; one that fails
// puts its error line in its place, and one END closes the whole.
// Source:    docs/protocols.md, "Multi-key gets".
// Lifetime:  owns itself until the last part is answered.
// Threads:   one worker.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "call/call.h"

namespace kvferry::route {

class SplitGet final : public call::ReplySink {
 public:
  /// Longest text before the first key: a command and its exptime, or blanks.
  static constexpr std::size_t kHeadBytesMax = 20;

  /// Answers `call` when all parts, each sent to `target`, are answered.
  static void start(call::CallPool& calls, call::Call& call, const memcache::Request& request,
                    call::Target& target);

  // call::ReplySink
  call::Flow on_reply(call::Call& call, const call::ReplyPart& part) override;

 private:
  struct Part {
    std::string bytes;
    call::ReplyOrigin origin = call::ReplyOrigin::Answerer;
    memcache::ReplyCode code = memcache::ReplyCode::None;
  };

  SplitGet(call::CallPool& calls, call::Call& call) : calls_(calls), call_(call) {}
  ~SplitGet() = default;
  void send(const memcache::Request& request, call::Target& target);
  void finish();

  call::CallPool& calls_;
  call::Call& call_;
  std::string lines_;  // Of all parts; requests point into it.
  std::vector<Part> parts_;
  std::size_t left_ = 0;
};

}  // namespace kvferry::route
