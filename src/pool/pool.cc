#include "pool/pool.h"

#include <algorithm>
#include <utility>

#include "pool/broadcast.h"
#include "pool/failure_text.h"
#include "pool/request_bytes.h"

namespace kvferry::pool {

using call::Call;
using memcache::Command;
using memcache::ReplyCode;
using memcache::Request;

namespace {

std::uint64_t seed_from(const void* object, net::Loop& loop) {
  const auto now = static_cast<std::uint64_t>(loop.now().time_since_epoch().count());
  return (now ^ (reinterpret_cast<std::uintptr_t>(object) * 0x9e3779b97f4a7c15U)) | 1;
}

bool is_same_server(const ServerOptions& left, const ServerOptions& right) {
  return left.host == right.host && left.port == right.port && left.name == right.name &&
         left.is_unix == right.is_unix;
}

}  // namespace

Pool::Pool(const PoolContext& context, std::shared_ptr<const PoolSnapshot> snapshot)
    : context_(context),
      gets_(context.loop, context.calls, context.budget),
      random_state_(seed_from(this, context.loop)) {
  apply(std::move(snapshot));
}

Pool::~Pool() = default;

void Pool::send(Call& call, const Request& request) {
  if (PoolGets::is_for(request)) {
    if (!gets_.start(call, request, *snapshot_->placement, backends_, options().on_partial,
                     random_state_)) {
      refuse_all_down(call);
    }
    return;
  }
  if (request.key_count == 0) {
    broadcast(call, request);
    return;
  }
  const std::uint32_t index = snapshot_->placement->select(request.key, random_state_);
  if (index == kNoServer) {
    refuse_all_down(call);
    return;
  }
  send_to_one(*backends_[index], call, request);
}

void Pool::send_to_one(Backend& backend, Call& call, const Request& request) {
  // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): the value lies behind the line
  std::string_view bytes(request.line.data(), request.size_bytes);
  if (must_unmute(request)) [[unlikely]] {
    bytes = unmute(request, scratch_);
  }
  if (!request.has_complete_value) [[unlikely]] {
    backend.start_upload(call, bytes);
    return;
  }
  backend.forward(call, bytes);
}

void Pool::broadcast(Call& call, const Request& request) {
  if (request.command != Command::FlushAll) {
    call::answer(call, "ERROR\r\n", ReplyCode::Error);
    return;
  }
  const std::string_view bytes = must_unmute(request) ? unmute(request, scratch_) : request.line;
  Broadcast::start(context_.calls, call, backends_, bytes);
}

void Pool::refuse_all_down(Call& call) const {
  const Failure failure{.kind = FailureKind::Down, .error = 0, .may_have_run = false};
  call::answer(call, failure_line(options(), {}, failure), ReplyCode::ServerError);
}

std::unique_ptr<Backend> Pool::take_backend(const ServerOptions& server,
                                            std::vector<std::unique_ptr<Backend>>& from) {
  const auto found = std::find_if(from.begin(), from.end(), [&](const auto& backend) {
    return backend && is_same_server(backend->server(), server);
  });
  return found == from.end() ? nullptr : std::move(*found);
}

void Pool::apply(std::shared_ptr<const PoolSnapshot> snapshot) {
  std::vector<std::unique_ptr<Backend>> before = std::exchange(backends_, {});
  // The old snapshot lives until every backend has let go of its options.
  const std::shared_ptr<const PoolSnapshot> old = std::exchange(snapshot_, std::move(snapshot));
  for (std::size_t i = 0; i < options().servers.size(); ++i) {
    const ServerOptions& server = options().servers[i];
    Backend::Setup setup{.options = &options(),
                         .server = server,
                         .address = snapshot_->addresses[i],
                         .health = snapshot_->health[i],
                         .tls = snapshot_->tls};
    std::unique_ptr<Backend> backend = take_backend(server, before);
    if (backend == nullptr) {
      backend = std::make_unique<Backend>(std::move(setup), context_.loop, context_.events,
                                          next_random(random_state_));
    } else {
      backend->configure(std::move(setup));
    }
    if (options().preconnect) {
      backend->preconnect();
    }
    backends_.push_back(std::move(backend));
  }
  std::erase_if(draining_, [](const Draining& draining) { return draining.backend->is_drained(); });
  for (auto& backend : before) {
    if (backend != nullptr) {
      backend->retire();
      draining_.push_back(Draining{.snapshot = old, .backend = std::move(backend)});
    }
  }
}

void Pool::retire() {
  for (auto& backend : backends_) {
    backend->retire();
  }
}

void Pool::shut() {
  for (auto& backend : backends_) {
    backend->shut();
  }
  for (auto& draining : draining_) {
    draining.backend->shut();
  }
}

bool Pool::is_drained() const {
  return std::all_of(backends_.begin(), backends_.end(),
                     [](const auto& backend) { return backend->is_drained(); }) &&
         std::all_of(draining_.begin(), draining_.end(),
                     [](const Draining& draining) { return draining.backend->is_drained(); });
}

}  // namespace kvferry::pool
