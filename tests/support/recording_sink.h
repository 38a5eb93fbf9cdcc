// Makes calls, and records what they are answered with.
#pragma once

#include <deque>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "call/call.h"
#include "net/loop.h"
#include "protocol/memcache/request_parser.h"

namespace kvferry::test {

/// What became of one call.
struct Outcome {
  call::Call* call = nullptr;  // Null once it was answered.
  std::string bytes;
  memcache::ReplyCode code = memcache::ReplyCode::None;
  call::Quiet quiet = call::Quiet::No;  // As it was when the answer came.
  int parts = 0;
  int pauses_left = 0;  // Says Pause to so many parts.
  bool is_paused = false;
  bool is_done = false;
  bool is_broken = false;
  int order = 0;  // The how-manieth call that was answered, from 1.
  int body_resumes = 0;

  bool is_failure() const { return is_done && memcache::is_error(code); }
};

class RecordingSink final : public call::ReplySink, public call::BodySource {
 public:
  RecordingSink(call::CallPool& calls, net::Loop& loop) : calls_(calls), loop_(loop) {}

  /// A call for `command`; its outcome stays valid as long as this.
  Outcome& make(memcache::Command command = memcache::Command::Get, std::uint64_t lane = 1) {
    call::Call& call = calls_.acquire();
    call.sink = this;
    call.body_source = this;
    call.started = loop_.now();
    call.lane = lane;
    call.command = command;
    call.reply_kind = memcache::reply_kind_of(command);
    call.owner_index = static_cast<std::uint32_t>(outcomes_.size());
    outcomes_.emplace_back();
    outcomes_.back().call = &call;
    return outcomes_.back();
  }

  /// Sends the request that `bytes` begin with to `target`.
  Outcome& send(call::Target& target, std::string_view bytes, std::uint64_t lane = 1) {
    memcache::RequestParser parser{memcache::ParserLimits{}};
    const auto parsed = parser.parse(bytes);
    KVF_CHECK(parsed.is_done());
    const memcache::Request& request = parsed.value();
    Outcome& outcome = make(request.command, lane);
    target.send(*outcome.call, request);
    return outcome;
  }

  void resume(Outcome& outcome) {
    ASSERT_TRUE(outcome.is_paused && outcome.call != nullptr);
    outcome.is_paused = false;
    outcome.call->source->resume(*outcome.call);
  }
  void discard(Outcome& outcome) {
    ASSERT_TRUE(outcome.is_paused && outcome.call != nullptr);
    outcome.is_paused = false;
    outcome.call->source->discard(*outcome.call);
  }

  int answered() const { return answered_; }

  call::Flow on_reply(call::Call& call, const call::ReplyPart& part) override {
    Outcome& outcome = outcomes_.at(call.owner_index);
    EXPECT_FALSE(outcome.is_done) << "answered twice";
    EXPECT_FALSE(outcome.is_paused && !part.is_last) << "a part came although it was paused";
    EXPECT_EQ(part.is_first, outcome.parts == 0);
    outcome.quiet = call.quiet;
    EXPECT_TRUE(!part.is_broken || (part.is_last && !part.is_first));
    outcome.bytes += part.bytes;
    outcome.code = part.code;
    outcome.is_broken = part.is_broken;
    ++outcome.parts;
    if (part.is_last) {
      outcome.is_done = true;
      outcome.order = ++answered_;
      outcome.call = nullptr;
      calls_.release(call);
      return call::Flow::Continue;
    }
    if (outcome.pauses_left > 0) {
      --outcome.pauses_left;
      outcome.is_paused = true;
      return call::Flow::Pause;
    }
    return call::Flow::Continue;
  }

  void resume_body(call::Call& call) override { ++outcomes_.at(call.owner_index).body_resumes; }
  void discard_body(call::Call& /*call*/) override {}

 private:
  call::CallPool& calls_;
  net::Loop& loop_;
  std::deque<Outcome> outcomes_;
  int answered_ = 0;
};

}  // namespace kvferry::test
