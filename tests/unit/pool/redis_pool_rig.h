// A pool of several fake Redis servers, and requests of its clients.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pool/redis_pool.h"
#include "protocol/redis_commands/command_table.h"
#include "protocol/resp/request_writer.h"
#include "tests/unit/pool/placed_rig.h"

namespace kvferry::pool {

class RedisPoolRig : public PlacedRig {
 protected:
  using Words = std::vector<std::string>;

  RedisPoolRig() { options_.protocol = Protocol::Redis; }
  ~RedisPoolRig() override {
    if (pool_) {
      pool_->shut();
    }
  }

  void make(std::size_t backends) {
    start(backends);
    pool_ = std::make_unique<RedisPool>(context(), snapshot_);
  }

  static std::string resp(const Words& words) {
    std::string bytes;
    const std::vector<std::string_view> views(words.begin(), words.end());
    resp::append_request(views, bytes);
    return bytes;
  }
  static std::string bulk(std::string_view bytes) {
    return "$" + std::to_string(bytes.size()) + "\r\n" + std::string(bytes) + "\r\n";
  }

  test::Outcome& send(const Words& words) {
    const std::string bytes = resp(words);
    return send_as(words, bytes, static_cast<std::uint32_t>(words.size()));
  }
  /// A request of which `words` have come, the last of `arg_count` being streamed behind `bytes`.
  test::Outcome& send_as(const Words& words, std::string_view bytes, std::uint32_t arg_count) {
    const std::vector<std::string_view> args(words.begin(), words.end());
    const redis::Request request{.command = *redis::resolve(args, arg_count).command,
                                 .args = args,
                                 .arg_count = arg_count,
                                 .bytes = bytes,
                                 .version = version_,
                                 .database = database_};
    test::Outcome& outcome = sink_.make(memcache::Command::Unknown, lane_);
    pool_->send(*outcome.call, request);
    return outcome;
  }

  resp::Version version_ = resp::Version::Two;  // Of the requests that follow.
  std::uint32_t database_ = 0;
  std::uint64_t lane_ = 1;
  std::unique_ptr<RedisPool> pool_;
};

}  // namespace kvferry::pool
