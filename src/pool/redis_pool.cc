#include "pool/redis_pool.h"

#include <string>

#include "pool/failure_text.h"

namespace kvferry::pool {

using call::Call;
using memcache::ReplyCode;
using redis::Request;
using redis::Routing;

RedisPool::RedisPool(const PoolContext& context, std::shared_ptr<const PoolSnapshot> snapshot)
    : context_(context), kept_(context, std::move(snapshot)) {}

RedisPool::~RedisPool() = default;

void RedisPool::send(Call& call, const Request& request) {
  switch (request.command.routing) {
    case Routing::SingleKey:
      send_single(call, request);
      return;
    case Routing::Keyless:
      send_keyless(call, request);
      return;
    default:
      refuse_command(call, request);
      return;
  }
}

void RedisPool::send_single(Call& call, const Request& request) {
  const auto at = static_cast<std::size_t>(request.command.first_key);
  if (at == 0 || at >= request.args.size()) [[unlikely]] {
    send_keyless(call, request);
    return;
  }
  send_to(place(request.args[at]), call, request);
}

void RedisPool::send_keyless(Call& call, const Request& request) {
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

}  // namespace kvferry::pool
