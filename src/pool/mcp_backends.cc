#include "pool/mcp_backends.h"

#include <utility>

#include "base/check.h"
#include "pool/mcp_backend.h"

namespace kvferry::pool {

McpBackends::McpBackends(McpContext context)
    : context_(std::move(context)),
      door_(context_.is_process_owner && context_.process_door != nullptr
                ? context_.process_door
                : std::make_shared<McpDoor>()),
      reap_task_(net::Task::Callback::to<&McpBackends::reap>(this)) {
  door_->open(context_.loop, *this);
}

McpBackends::~McpBackends() {
  door_->close();
  for (auto& [id, end] : far_ends_) {
    end->detach();
  }
  far_ends_.clear();
  KVF_CHECK(live_.empty());
}

std::shared_ptr<McpServer> McpBackends::acquire(
    const std::string& prefix, const std::shared_ptr<const McpBackendOptions>& options,
    bool is_process_wide) {
  // Where nobody owns them, each worker has its own.
  is_process_wide = is_process_wide && context_.process_door != nullptr;
  std::weak_ptr<McpServer>& known = known_[Key(is_process_wide, prefix, options->label)];
  if (auto server = known.lock(); server != nullptr && server->options() == *options) {
    return server;
  }
  std::unique_ptr<McpServer> made = make(prefix, options, is_process_wide);
  live_.push_back(made.get());
  std::shared_ptr<McpServer> shared(made.release(), [this](McpServer* server) { release(server); });
  known = shared;
  return shared;
}

std::unique_ptr<McpServer> McpBackends::make(
    const std::string& prefix, const std::shared_ptr<const McpBackendOptions>& options,
    bool is_process_wide) {
  const call::Answerer& answerer = answerer_of(*options);
  if (is_process_wide && !context_.is_process_owner) {
    return std::make_unique<McpRemote>(McpRemote::Setup{.loop = context_.loop,
                                                        .home = door_,
                                                        .far = context_.process_door,
                                                        .prefix = prefix,
                                                        .options = options,
                                                        .answerer = answerer});
  }
  return std::make_unique<McpBackend>(context_, options, answerer);
}

/// Few differ, and they stay: the number of places and tags that were ever configured bounds them.
const call::Answerer& McpBackends::answerer_of(const McpBackendOptions& options) {
  const std::string place = options.host + ":" + options.port;
  for (const auto& answerer : answerers_) {
    if (answerer->place == place && answerer->logging == options.logging) {
      return *answerer;
    }
  }
  answerers_.push_back(
      std::make_unique<call::Answerer>(call::Answerer{.place = place, .logging = options.logging}));
  return *answerers_.back();
}

void McpBackends::release(McpServer* server) {
  std::erase(live_, server);
  aside_.emplace_back(server);
  server->retire(McpServer::DrainedCallback::to<&McpBackends::on_drained>(this));
  context_.loop.defer(reap_task_);
}

void McpBackends::reap() {
  std::erase_if(far_ends_, [](const auto& entry) {
    return entry.second->is_detached() && entry.second->is_drained();
  });
  std::erase_if(aside_, [](const auto& server) { return server->is_drained(); });
  std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
}

void McpBackends::on_resolved(const std::string& host, std::uint16_t port,
                              const net::Address& address) {
  // What this brings about may answer calls, and scripts may drop or make pools then: those go on
  // in `aside_` at worst.
  const std::vector<McpServer*> servers = live_;
  for (McpServer* server : servers) {
    server->on_resolved(host, port, address);
  }
}

void McpBackends::shut() {
  for (auto& [id, end] : far_ends_) {
    end->detach();
  }
  // What is answered may drop pools, whose backends come here too.
  // NOLINTNEXTLINE(modernize-loop-convert): the list may grow meanwhile.
  for (std::size_t i = 0; i < aside_.size(); ++i) {
    aside_[i]->shut();
  }
  for (auto& [id, end] : far_ends_) {
    end->flush();
  }
  context_.loop.defer(reap_task_);
}

void McpBackends::attach_far_end(std::uint64_t id, const std::string& prefix,
                                 const std::shared_ptr<const McpBackendOptions>& options,
                                 std::shared_ptr<McpDoor> home,
                                 std::shared_ptr<McpWaiting> waiting) {
  KVF_CHECK(context_.calls != nullptr);
  far_ends_.emplace(
      id, std::make_unique<McpFarEnd>(McpFarEnd::Setup{.loop = context_.loop,
                                                       .calls = *context_.calls,
                                                       .backend = acquire(prefix, options, true),
                                                       .home = std::move(home),
                                                       .waiting = std::move(waiting)}));
}

void McpBackends::detach_far_end(std::uint64_t id) {
  if (McpFarEnd* end = far_end(id)) {
    end->detach();
    context_.loop.defer(reap_task_);
  }
}

McpFarEnd* McpBackends::far_end(std::uint64_t id) {
  const auto found = far_ends_.find(id);
  return found == far_ends_.end() ? nullptr : found->second.get();
}

}  // namespace kvferry::pool
