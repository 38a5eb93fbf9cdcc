// Broadcast: one request for every backend of a pool, answered once: with what all agree on, or
// with the first failure.
//
// For administration (flush_all); never on the steady request path, so it allocates.
// Threads: one worker.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "call/call.h"

namespace kvferry::pool {

class Backend;

class Broadcast final : public call::ReplySink {
 public:
  /// Sends `bytes` to all of `backends` and answers `parent` when the last has answered.
  static void start(call::CallPool& calls, call::Call& parent,
                    const std::vector<std::unique_ptr<Backend>>& backends, std::string_view bytes);

  call::Flow on_reply(call::Call& call, const call::ReplyPart& part) override;

 private:
  Broadcast(call::CallPool& calls, call::Call& parent, std::size_t count)
      : calls_(calls), parent_(parent), left_(count) {}

  void finish_if_done();

  call::CallPool& calls_;
  call::Call& parent_;
  std::size_t left_;
  std::string answer_;  // The first failure, else the first reply.
  memcache::ReplyCode code_ = memcache::ReplyCode::None;
};

}  // namespace kvferry::pool
