// A client of a StoreTarget without a session: bytes in, bytes out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/memory_budget.h"
#include "call/call.h"
#include "protocol/memcache/reply.h"
#include "protocol/memcache/request_parser.h"
#include "route/store_target.h"

namespace kvferry::route {

/// Collects replies, hiding what the client asked not to see.
class CollectingSink final : public call::ReplySink {
 public:
  call::Flow on_reply(call::Call& call, const call::ReplyPart& part) override {
    if (part.is_first) {
      is_hidden_ = call::is_hidden(call.quiet, part.code);
    }
    if (!is_hidden_) {
      bytes += part.bytes;
    }
    code = part.code;
    ++parts;
    finished += part.is_last ? 1 : 0;
    const bool pauses = pauses_left > 0 && !part.is_last;
    pauses_left -= pauses ? 1 : 0;
    is_paused = pauses;
    return pauses ? call::Flow::Pause : call::Flow::Continue;
  }

  std::string bytes;
  memcache::ReplyCode code = memcache::ReplyCode::None;
  int parts = 0;
  int finished = 0;
  int pauses_left = 0;  // Answers Pause to so many parts.
  bool is_paused = false;

 private:
  bool is_hidden_ = false;
};

inline call::Quiet quiet_of(const memcache::Request& request) {
  if (request.noreply) {
    return call::Quiet::All;
  }
  if (!request.quiet) {
    return call::Quiet::No;
  }
  return request.command == memcache::Command::Mg ? call::Quiet::Miss : call::Quiet::Success;
}

class StoreConversation {
 public:
  explicit StoreConversation(const store::StoreConfig& config = {},
                             const StoreTargetOptions& options = {})
      : limits_{.value_bytes_max = config.item_bytes_max},
        store_(config),
        target_(store_, budget_, options),
        parser_(limits_) {
    set_now(kStart);
  }

  static constexpr std::uint32_t kStart = 1'700'000'000;

  void set_now(std::uint32_t now) {
    now_ = now;
    target_.set_now(store::Instant{now});
  }
  void advance(std::uint32_t seconds) { set_now(now_ + seconds); }

  /// Sends `bytes`, which end at the end of a request; returns what was answered.
  std::string say(std::string_view bytes) {
    while (!bytes.empty()) {
      auto parsed = parser_.parse(bytes);
      if (parsed.is_need_more()) {
        return take() + "<incomplete>";
      }
      if (parsed.is_failed()) {
        const memcache::ParseFailure failure = parsed.error();
        refuse(failure);
        bytes.remove_prefix(failure.size_bytes + static_cast<std::size_t>(failure.skip_bytes));
        continue;
      }
      bytes = run(bytes, parsed.value());
    }
    return take();
  }

  std::string take() { return std::exchange(sink_.bytes, {}); }
  CollectingSink& sink() { return sink_; }
  call::Call& call() { return call_; }
  store::Store& store() { return store_; }
  StoreTarget& target() { return target_; }
  base::MemoryBudget& budget() { return budget_; }
  /// Size of the parts that streamed values are handed over in.
  std::size_t body_part_bytes = 10'000;

 private:
  void refuse(const memcache::ParseFailure& failure) {
    if (failure.error == memcache::RequestError::TooLarge) {
      target_.on_value_too_large(failure.key);
    }
    if (!failure.noreply) {
      sink_.bytes += memcache::error_line(failure.error, memcache::ErrorWords::Store);
    }
  }

  std::string_view run(std::string_view bytes, const memcache::Request& request) {
    call_ = call::Call{};
    call_.sink = &sink_;
    call_.quiet = quiet_of(request);
    target_.send(call_, request);
    std::string_view rest = bytes.substr(request.size_bytes);
    if (request.has_complete_value) {
      return rest;
    }
    // The whole value is at hand: the rest of it is what the head did not take.
    const auto whole = request.line.size() + static_cast<std::size_t>(request.value_bytes) +
                       memcache::kValueEndBytes;
    std::string_view body = bytes.substr(request.line.size(), whole - request.line.size());
    rest = bytes.substr(whole);
    while (call_.body_sink != nullptr && !body.empty()) {
      const std::string_view part = body.substr(0, body_part_bytes);
      body.remove_prefix(part.size());
      call_.body_sink->on_body(call_, part, body.empty());
    }
    return rest;
  }

  memcache::ParserLimits limits_;
  base::MemoryBudget budget_{0};
  store::Store store_;
  StoreTarget target_;
  memcache::RequestParser parser_;
  CollectingSink sink_;
  call::Call call_;
  std::uint32_t now_ = 0;
};

}  // namespace kvferry::route
