#include "pool/redis_pool.h"

#include <string>

#include "pool/failure_text.h"
#include "pool/redis_broadcast.h"
#include "pool/redis_scan.h"
#include "protocol/redis_commands/command_errors.h"

namespace kvferry::pool {

using call::Call;
using memcache::ReplyCode;
using redis::Request;
using redis::Routing;

namespace {

constexpr std::string_view kCrossSlotError =
    "CROSSSLOT Keys in request don't hash to the same slot";
constexpr std::string_view kSortByError = "ERR BY option of SORT denied in Cluster mode.";
constexpr std::string_view kSortGetError = "ERR GET option of SORT denied in Cluster mode.";

void answer_error(Call& call, std::string_view text) {
  call::answer(call, "-" + std::string(text) + "\r\n", ReplyCode::ServerError);
}

}  // namespace

RedisPool::RedisPool(const PoolContext& context, std::shared_ptr<const PoolSnapshot> snapshot)
    : context_(context), kept_(context, std::move(snapshot)), splits_(context_, kept_) {}

RedisPool::~RedisPool() = default;

void RedisPool::send(Call& call, const Request& request) {
  if (request.database != 0 && request.database >= options().redis.databases) [[unlikely]] {
    // A reload may have left fewer; lanes are made for no others.
    answer_error(call, "ERR DB index is out of range");
    return;
  }
  switch (request.command.routing) {
    case Routing::SingleKey:
      send_single(call, request);
      return;
    case Routing::SplitKeys:
      send_split(call, request);
      return;
    case Routing::SameSlotKeys:
      send_together(call, request);
      return;
    case Routing::Keyless:
      send_keyless(call, request);
      return;
    case Routing::Broadcast:
      send_to_all(call, request);
      return;
    default:
      refuse_command(call, request);
      return;
  }
}

void RedisPool::send_single(Call& call, const Request& request) {
  const std::size_t at = request.command.sole_key;
  if (at != 0 && at < request.args.size()) [[likely]] {
    send_to(place(request.args[at]), call, request);
    return;
  }
  send_together(call, request);
}

void RedisPool::send_split(Call& call, const Request& request) {
  const std::size_t stride = RedisSplits::stride_of(request.command);
  if (has_one_shard()) {
    send_to(place({}), call, request);
  } else if (!request.is_complete()) {
    refuse_large(call);
  } else if (request.args.size() < 2 || (request.args.size() - 1) % stride != 0) {
    send_keyless(call, request);  // Any server says what is wrong with it.
  } else if (const std::uint32_t index = splits_.place(request); index != RedisSplits::kSeveral) {
    send_to(index, call, request);
  } else {
    splits_.start(call, request);
  }
}

void RedisPool::send_together(Call& call, const Request& request) {
  if (has_one_shard()) {
    send_to(place({}), call, request);
    return;
  }
  const redis::KeyOutcome outcome =
      redis::find_keys(request.command, request.args, request.arg_count, keys_);
  if (outcome == redis::KeyOutcome::NotHere) {
    refuse_large(call);
    return;
  }
  if (const std::string_view error = redis::key_error(request.command, outcome); !error.empty()) {
    answer_error(call, error);
    return;
  }
  if (request.command.key_rule == redis::KeyRule::Sort && request.is_complete()) {
    const redis::SortPatterns patterns = redis::find_sort_patterns(request.args);
    if (patterns.has_by || patterns.has_get) {
      answer_error(call, patterns.has_by ? kSortByError : kSortGetError);
      return;
    }
  }
  if (keys_.is_empty() && request.command.key_rule == redis::KeyRule::Script) {
    send_to(first_up(), call, request);
    return;
  }
  if (outcome == redis::KeyOutcome::Refused || keys_.is_empty()) {
    send_keyless(call, request);
    return;
  }
  const std::uint32_t index = place_together(request);
  if (index == RedisSplits::kSeveral) {
    answer_error(call, kCrossSlotError);
    return;
  }
  send_to(index, call, request);
}

std::uint32_t RedisPool::place_together(const Request& request) {
  const Placement& placement = *kept_.snapshot().placement;
  const bool is_strict = options().redis.same_slot == SameSlot::Strict;
  const std::string_view first = request.args[keys_.all().front().index];
  const std::uint32_t index = place(first);
  for (const redis::KeyPlace& key : keys_.all().subspan(1)) {
    const std::string_view other = request.args[key.index];
    if (place(other) != index ||
        (is_strict && placement.hashed_part(other) != placement.hashed_part(first))) {
      return RedisSplits::kSeveral;
    }
  }
  return index;
}

void RedisPool::send_keyless(Call& call, const Request& request) {
  if ((request.command.flags & redis::kPubSub) != 0 && request.args.size() > 1) {
    send_to(place(request.args[1]), call, request);  // The shard of the channel.
    return;
  }
  const auto count = static_cast<std::uint32_t>(backends().size());
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t index = next_keyless_++ % count;
    if (i + 1 == count || !backends()[index]->shared_health()->is_down()) {
      send_to(index, call, request);
      return;
    }
  }
  refuse_all_down(call);
}

std::uint32_t RedisPool::first_up() const {
  for (std::uint32_t i = 0; i < backends().size(); ++i) {
    if (!backends()[i]->shared_health()->is_down()) {
      return i;
    }
  }
  return kNoServer;
}

void RedisPool::send_to_all(Call& call, const Request& request) {
  if (has_one_shard()) {
    send_to(place({}), call, request);
  } else if (!request.is_complete()) {
    refuse_large(call);
  } else if (request.command.merge == redis::Merge::Cursor && !backends().empty()) {
    RedisScan::start(context_, kept_, call, request);
  } else {
    RedisBroadcast::start(context_, kept_, call, request);
  }
}

void RedisPool::send_to(std::uint32_t index, Call& call, const Request& request) {
  if (index == kNoServer) [[unlikely]] {
    refuse_all_down(call);
    return;
  }
  Backend& lane = backends()[index]->lane(request.version, request.database);
  if (!request.is_complete()) [[unlikely]] {
    lane.start_upload(call, request.bytes);
    return;
  }
  lane.forward(call, request.bytes);
}

void RedisPool::refuse_all_down(Call& call) const {
  const Failure failure{.kind = FailureKind::Down, .error = 0, .may_have_run = false};
  call::answer(call, failure_line(options(), {}, failure), ReplyCode::ServerError);
}

void RedisPool::refuse_command(Call& call, const Request& request) const {
  const std::string line = "-ERR kvferry: '" + std::string(request.command.name) +
                           "' is refused by the proxy" + redis_place(options(), {}) + "\r\n";
  call::answer(call, line, ReplyCode::ServerError);
}

void RedisPool::refuse_large(Call& call) const {
  answer_error(call, "ERR kvferry: an argument above 64 KiB stands before the keys are known" +
                         redis_place(options(), {}));
}

}  // namespace kvferry::pool
