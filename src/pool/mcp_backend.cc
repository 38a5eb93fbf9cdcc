#include "pool/mcp_backend.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/check.h"

namespace kvferry::pool {

using call::Call;

namespace {

/// 0 when `text` is no port.
std::uint16_t port_of(const std::string& text) {
  std::uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, port);
  return error == std::errc{} && stop == end ? port : std::uint16_t{0};
}

}  // namespace

void answer_mcp_failure(Call& call) {
  call.sink->on_reply(call, call::ReplyPart{.bytes = kMcpFailureLine,
                                            .code = memcache::ReplyCode::ServerError,
                                            .is_first = true,
                                            .is_last = true,
                                            .origin = call::ReplyOrigin::Failure});
}

McpBackend::McpBackend(McpContext context, std::shared_ptr<const McpBackendOptions> options,
                       const call::Answerer& answerer)
    : context_(std::move(context)),
      options_(std::move(options)),
      answerer_(answerer),
      port_(port_of(options_->port)),
      batch_task_(net::Task::Callback::to<&McpBackend::on_batch_over>(this)) {
  context_.stats->backends.add(1);
  if (options_->is_down) {
    return;
  }
  label_stats_ = context_.stats->add_label(options_->label);
  if (auto literal = net::Address::from_ip(options_->host, port_)) {
    address_ = literal.value();
  } else {
    is_name_ = true;
  }
  for (std::uint32_t i = 0; i < options_->connections; ++i) {
    links_.push_back(std::make_unique<McpLink>(*this, context_.loop));
  }
}

McpBackend::~McpBackend() {
  context_.stats->backends.sub(1);
}

void McpBackend::forward(Call& call, std::string_view bytes) {
  call.answerer = &answerer_;
  if (links_.empty()) {
    answer_mcp_failure(call);
    return;
  }
  if (!batch_task_.is_queued() || batch_link_->is_bad()) {
    begin_batch();
  }
  if (batch_link_->is_bad()) {
    answer_mcp_failure(call);
  } else if (is_batch_refused_) {
    context_.stats->failed_depth.add(call.reply_count);
    answer_mcp_failure(call);
  } else {
    batch_link_->forward(call, bytes);
  }
}

void McpBackend::begin_batch() {
  batch_link_ = choose_link();
  is_batch_refused_ = options_->depth_limit != 0 && batch_link_->inflight() > options_->depth_limit;
  context_.loop.defer(batch_task_);
}

McpLink* McpBackend::choose_link() const {
  McpLink* best = nullptr;
  for (const auto& link : links_) {
    if (link->is_bad()) {
      continue;
    }
    if (best == nullptr || link->inflight() < best->inflight()) {
      best = link.get();
    }
    if (best->inflight() == 0) {
      break;
    }
  }
  return best == nullptr ? links_.front().get() : best;
}

void McpBackend::ask_address() {
  if (!is_name_ || is_asked_) {
    return;
  }
  is_asked_ = true;
  if (context_.names != nullptr) {
    context_.names->resolve(options_->host, port_);
  }
}

void McpBackend::on_resolved(const std::string& host, std::uint16_t port,
                             const net::Address& address) {
  if (!is_name_ || port != port_ || host != options_->host) {
    return;
  }
  is_asked_ = false;
  if (address.is_set()) {
    address_ = address;
  }
  for (const auto& link : links_) {
    link->on_address();
  }
}

void McpBackend::retire(DrainedCallback on_drained) {
  on_drained_ = on_drained;
  for (const auto& link : links_) {
    link->retire();
  }
}

void McpBackend::shut() {
  for (const auto& link : links_) {
    link->shut();
  }
}

bool McpBackend::is_drained() const {
  return std::all_of(links_.begin(), links_.end(),
                     [](const auto& link) { return link->inflight() == 0; });
}

bool McpBackend::has_reply_room() {
  return context_.memory == nullptr || context_.memory->has_reply_room();
}

void McpBackend::on_link_failed(McpFailure failure, std::size_t depth, std::string_view unread) {
  context_.events.on_backend_error(*options_, failure, depth, unread);
}

void McpBackend::on_link_retried() {
  context_.stats->failed.add(1);
}

void McpBackend::on_link_bad(bool is_flapping, base::Seconds pause) {
  context_.stats->marked_bad.add(1);
  label_stats_->bad_links.add(1);
  context_.events.on_marked_bad(*options_, is_flapping, pause);
}

void McpBackend::on_link_well() {
  label_stats_->bad_links.sub(1);
}

void McpBackend::on_link_retired() {
  if (on_drained_ && is_drained()) {
    on_drained_();
  }
}

}  // namespace kvferry::pool
