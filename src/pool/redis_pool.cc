#include "pool/redis_pool.h"

#include <algorithm>
#include <functional>
#include <string>

#include "base/check.h"
#include "pool/failure_text.h"
#include "pool/redis_block.h"
#include "pool/redis_broadcast.h"
#include "pool/redis_scan.h"
#include "protocol/redis_commands/command_errors.h"
#include "protocol/resp/request_parser.h"

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

/// Messages go to the shard of their channel.
bool is_placed_by_channel(const Request& request) {
  return (request.command.flags & redis::kPubSub) != 0 && request.args.size() > 1;
}

void answer_error(Call& call, std::string_view text) {
  call::answer(call, "-" + std::string(text) + "\r\n", ReplyCode::ServerError);
}

}  // namespace

RedisPool::RedisPool(const PoolContext& context, std::shared_ptr<const PoolSnapshot> snapshot)
    : context_(context), kept_(context, std::move(snapshot)), splits_(context_, kept_) {}

RedisPool::~RedisPool() = default;

void RedisPool::send(Call& call, const Request& request) {
  if (!has_database(call, request.database)) [[unlikely]] {
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

/// A reload may have left fewer; lanes are made for no others. False: `call` is answered.
bool RedisPool::has_database(Call& call, std::uint32_t database) const {
  if (database == 0 || database < options().redis.databases) [[likely]] {
    return true;
  }
  answer_error(call, "ERR DB index is out of range");
  return false;
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
  redis::KeyOutcome outcome = redis::KeyOutcome::Found;
  const std::string_view error = find_all_keys(request, outcome);
  if (outcome == redis::KeyOutcome::NotHere) {
    refuse_large(call);
    return;
  }
  if (!error.empty()) {
    answer_error(call, error);
    return;
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

std::string_view RedisPool::find_all_keys(const Request& request, redis::KeyOutcome& outcome) {
  outcome = redis::find_keys(request.command, request.args, request.arg_count, keys_);
  if (const std::string_view error = redis::key_error(request.command, outcome); !error.empty()) {
    return error;
  }
  if (request.command.key_rule == redis::KeyRule::Sort && request.is_complete()) {
    const redis::SortPatterns patterns = redis::find_sort_patterns(request.args);
    if (patterns.has_by || patterns.has_get) {
      return patterns.has_by ? kSortByError : kSortGetError;
    }
  }
  return {};
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
  if (is_placed_by_channel(request)) {
    send_to(place(request.args[1]), call, request);
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

std::string_view RedisPool::join(const Request& request, call::BlockPlace& place) {
  const Placement& placement = *kept_.snapshot().placement;
  if (has_one_shard() || !placement.is_stable()) {
    return {};
  }
  redis::KeyOutcome outcome = redis::KeyOutcome::Found;
  if (const std::string_view error = find_all_keys(request, outcome); !error.empty()) {
    return error;
  }
  const auto fits = [&](std::string_view key) {
    const std::uint32_t shard = this->place(key);
    const std::uint64_t slot = options().redis.same_slot == SameSlot::Strict
                                   ? std::hash<std::string_view>()(placement.hashed_part(key))
                                   : shard;
    if (!place.is_known) {
      place = {.is_known = true, .shard = shard, .slot = slot};
    }
    return place.slot == slot;
  };
  const bool has_channel = is_placed_by_channel(request);
  const bool fits_all = (!has_channel || fits(request.args[1])) &&
                        std::ranges::all_of(keys_.all(), [&](const redis::KeyPlace& key) {
                          return fits(request.args[key.index]);
                        });
  return fits_all ? std::string_view() : kCrossSlotError;
}

void RedisPool::execute(Call& call, const redis::Block& block) {
  if (!has_database(call, block.database)) {
    return;
  }
  std::uint32_t index = kNoServer;
  if (const std::string_view error = place_block(block, index); !error.empty()) {
    answer_error(call, "EXECABORT Transaction discarded because of: " + std::string(error));
  } else if (index == kNoServer) {
    refuse_all_down(call);
  } else {
    RedisBlock::start(context_, backends()[index]->lane(block.version, block.database), call,
                      block);
  }
}

std::string_view RedisPool::place_block(const redis::Block& block, std::uint32_t& index) {
  if (has_one_shard() || !kept_.snapshot().placement->is_stable()) {
    index = place({});
    return {};
  }
  // Each command was let in when it was queued, but keys may have moved since.
  call::BlockPlace place;
  resp::RequestParser parser({.stream_bytes_min = block.bytes.size() + 1});
  for (const redis::QueuedCommand& queued : block.commands) {
    const auto parsed = parser.parse(block.bytes.substr(queued.begin, queued.size_bytes));
    KVF_CHECK(parsed.is_done());  // It was parsed when it was queued.
    const Request request{.command = *queued.command,
                          .args = parsed.value().args,
                          .arg_count = queued.arg_count,
                          .bytes = {}};
    if (const std::string_view error = join(request, place); !error.empty()) {
      return error;
    }
  }
  index = place.is_known ? place.shard : first_up();
  return {};
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
