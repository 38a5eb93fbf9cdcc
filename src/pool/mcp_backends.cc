#include "pool/mcp_backends.h"

#include <algorithm>

#include "base/check.h"

namespace kvferry::pool {

McpBackends::McpBackends(McpContext context)
    : context_(std::move(context)), reap_task_(net::Task::Callback::to<&McpBackends::reap>(this)) {}

McpBackends::~McpBackends() {
  KVF_CHECK(live_.empty());
}

std::shared_ptr<McpBackend> McpBackends::acquire(
    const std::string& prefix, const std::shared_ptr<const McpBackendOptions>& options) {
  std::weak_ptr<McpBackend>& known = known_[Key(prefix, options->label)];
  if (auto backend = known.lock(); backend != nullptr && backend->options() == *options) {
    return backend;
  }
  auto made = std::make_unique<McpBackend>(context_, options, answerer_of(*options));
  live_.push_back(made.get());
  std::shared_ptr<McpBackend> shared(made.release(),
                                     [this](McpBackend* backend) { release(backend); });
  known = shared;
  return shared;
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

void McpBackends::release(McpBackend* backend) {
  std::erase(live_, backend);
  aside_.emplace_back(backend);
  backend->retire(McpBackend::RetiredCallback::to<&McpBackends::on_drained>(this));
  context_.loop.defer(reap_task_);
}

void McpBackends::reap() {
  std::erase_if(aside_, [](const auto& backend) { return backend->is_drained(); });
  std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
}

void McpBackends::on_resolved(const std::string& host, std::uint16_t port,
                              const net::Address& address) {
  // What this brings about may answer calls, and scripts may drop or make pools then.
  const std::vector<McpBackend*> backends = live_;
  for (McpBackend* backend : backends) {
    if (backend->port() == port && backend->options().host == host) {
      backend->on_resolved(address);
    }
  }
}

void McpBackends::shut() {
  for (std::size_t i = 0; i < aside_.size(); ++i) {
    aside_[i]->shut();
  }
}

}  // namespace kvferry::pool
