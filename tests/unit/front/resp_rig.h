// A service whose clients speak the Redis protocol, and a target for their requests that answers
// when the test says so.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "front/client_registry.h"
#include "protocol/redis_commands/request.h"
#include "tests/unit/front/session_rig.h"

namespace kvferry::front {

class HeldRedisTarget final : public call::RedisTarget,
                              public call::ReplySource,
                              public call::BodySink {
 public:
  struct Held {
    call::Call* call = nullptr;
    std::string bytes;
    std::string command;
    std::uint32_t database = 0;
    resp::Version version{};
    std::string body{};
    bool is_whole = false;
    bool is_lost = false;
    int discards = 0;
  };

  void send(call::Call& call, const redis::Request& request) override {
    held.push_back({.call = &call,
                    .bytes = std::string(request.bytes),
                    .command = std::string(request.command.name),
                    .database = request.database,
                    .version = request.version});
    call.source = this;
    if (!request.is_complete()) {
      call.body_sink = this;
    }
    if (!instant_reply.empty()) {
      reply(held.size() - 1, instant_reply);
    }
  }
  void execute(call::Call& call, const redis::Block& block) override {
    held.push_back({.call = &call,
                    .bytes = std::string(block.bytes),
                    .command = "block of " + std::to_string(block.commands.size()),
                    .database = block.database,
                    .version = block.version});
    call.source = this;
  }

  std::string_view join(const redis::Request& request, call::BlockPlace& /*place*/) override {
    return request.args.back() == unfit ? kUnfitError : std::string_view();
  }
  static constexpr std::string_view kUnfitError = "CROSSSLOT elsewhere";

  void reply(std::size_t index, std::string_view bytes) {
    call::Call& call = *held.at(index).call;
    held.at(index).call = nullptr;
    call.body_sink = nullptr;
    call::answer(call, bytes, call::redis_reply_code(bytes[0], bytes[1]));
  }
  void finish() {
    for (std::size_t i = 0; i < held.size(); ++i) {
      if (held[i].call != nullptr) {
        reply(i, "+LATE\r\n");
      }
    }
  }

  void resume(call::Call& /*call*/) override {}
  void discard(call::Call& call) override { ++find(call).discards; }
  call::Flow on_body(call::Call& call, std::string_view bytes, bool is_last) override {
    Held& one = find(call);
    EXPECT_FALSE(one.is_whole);
    one.body += bytes;
    one.is_whole = is_last;
    if (is_last) {
      call.body_sink = nullptr;
    }
    return call::Flow::Continue;
  }
  void on_body_lost(call::Call& call) override {
    Held& one = find(call);
    one.is_lost = true;
    reply(static_cast<std::size_t>(&one - held.data()), "-ERR lost\r\n");
  }

  std::vector<Held> held;
  std::string instant_reply;
  std::string unfit = "unfit";  // Requests that end in this join no transaction.

 private:
  Held& find(const call::Call& call) {
    for (Held& one : held) {
      if (one.call == &call) {
        return one;
      }
    }
    ADD_FAILURE() << "asked about a call that is not outstanding";
    return held.front();
  }
};

class RespRig : public SessionRig {
 protected:
  RespRig() {
    options_.resp.is_served = true;
    options_.resp.is_only = true;
    options_.serves_text = options_.serves_binary = false;
    renew();
  }
  ~RespRig() override {
    redis_.finish();
    service_->close_all();
    redis_.finish();
  }

  /// A new service with options_; no client may be there.
  void renew() {
    listener_.reset();
    service_ = std::make_unique<Service>(ServiceContext{.loop = *rig_.loop,
                                                        .calls = calls_,
                                                        .sessions = sessions_,
                                                        .budget = rig_.budget,
                                                        .commands = commands_,
                                                        .clients = &registry_},
                                         options_, target_, process_limit_, limit_);
    service_->set_redis_target(redis_);
    listener_ = rig_.loop->listen(test::LoopRig::loopback(), {}, *service_).value();
  }
  bool wait_for_redis(std::size_t count) {
    return run_until([&] { return redis_.held.size() >= count; });
  }

  ClientRegistry registry_;
  HeldRedisTarget redis_;
};

/// A request as clients write it.
inline std::string request(std::initializer_list<std::string_view> args) {
  std::string bytes = "*" + std::to_string(args.size()) + "\r\n";
  for (const std::string_view argument : args) {
    bytes.append("$")
        .append(std::to_string(argument.size()))
        .append("\r\n")
        .append(argument)
        .append("\r\n");
  }
  return bytes;
}

}  // namespace kvferry::front
