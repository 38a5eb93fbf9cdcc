#include "pool/backend.h"

#include <algorithm>
#include <utility>

#include "net/tls_context.h"

namespace kvferry::pool {

using call::Call;
using call::Flow;
using memcache::ReplyCode;

Backend::Backend(Setup setup, net::Loop& loop, PoolEvents& events, std::uint64_t random_seed)
    : setup_(std::move(setup)),
      loop_(loop),
      events_(events),
      stats_(setup_.stats != nullptr ? setup_.stats : std::make_shared<BackendStats>()),
      wait_timer_(net::Timer::Callback::to<&Backend::on_wait_timer>(this)),
      reap_task_(net::Task::Callback::to<&Backend::reap>(this)),
      random_state_(random_seed | 1) {
  for (std::uint32_t i = 0; i < options().server_connections; ++i) {
    links_.push_back(std::make_unique<Link>(*this, loop_, Link::Use::Shared));
  }
}

Backend::~Backend() {
  KVF_CHECK(waiting_.empty());
}

std::uint32_t Backend::now_ms() const {
  return static_cast<std::uint32_t>(
      std::chrono::duration_cast<base::Millis>(loop_.now().time_since_epoch()).count());
}

Link& Backend::link_for(const Call& call) {
  for (const auto& link : aside_) {
    if (link->has_lane(call.lane)) {
      return *link;
    }
  }
  return *links_[links_.size() == 1 ? 0 : call.lane % links_.size()];
}

Link* Backend::admit(const Call& call, Failure& why) {
  Link& link = link_for(call);
  if (const auto refusal = link.admit()) {
    why = Failure{.kind = *refusal, .error = 0, .may_have_run = false};
    return nullptr;
  }
  return &link;
}

void Backend::forward(Call& call, std::string_view bytes) {
  Failure why;
  Link* link = admit(call, why);
  if (link == nullptr) {
    refuse(call, why);
    return;
  }
  stats_->bytes_sent.add(bytes.size());
  link->write(bytes);
  link->commit(call);
}

void Backend::refuse(Call& call, const Failure& failure) {
  stats_->failures[static_cast<std::size_t>(failure.kind)].add(1);
  call::answer(call, failure_line(failure), ReplyCode::ServerError);
}

std::string Backend::failure_line(const Failure& failure) const {
  return pool::failure_line(options(), setup_.server.label, failure);
}

Link* Backend::free_upload_link() {
  for (const auto& link : uploads_) {
    if (link->is_empty() && !link->is_retired()) {
      return link.get();
    }
  }
  if (uploads_.size() < kUploadLinksMax) {
    uploads_.push_back(std::make_unique<Link>(*this, loop_, Link::Use::Exclusive));
    return uploads_.back().get();
  }
  return nullptr;
}

void Backend::start_upload(Call& call, std::string_view line) {
  Link* link = waiting_.empty() ? free_upload_link() : nullptr;
  if (link != nullptr) {
    if (admit_upload(*link, call)) {
      begin_upload(*link, call, line);
    }
    return;
  }
  call.stash.append(loop_.blocks(), line);
  call.sent_at_ms = now_ms();
  call.body_sink = this;
  call.body_waits = true;
  waiting_.push_back(call);
  if (!wait_timer_.is_armed()) {
    loop_.timers().arm(wait_timer_, loop_.now() + upload_wait_max());
  }
}

bool Backend::admit_upload(Link& link, Call& call) {
  if (const auto refusal = link.admit()) {
    call.body_sink = nullptr;
    refuse(call, Failure{.kind = *refusal, .error = 0, .may_have_run = false});
    return false;
  }
  return true;
}

void Backend::begin_upload(Link& link, Call& call, std::string_view line) {
  stats_->bytes_sent.add(line.size());
  link.write(line);
  link.commit_upload(call);
}

void Backend::start_waiting_uploads() {
  while (!waiting_.empty()) {
    Link* link = free_upload_link();
    if (link == nullptr) {
      return;
    }
    Call& call = *waiting_.pop_front();
    base::ByteChain head = std::exchange(call.stash, base::ByteChain{});
    call.body_waits = false;
    if (admit_upload(*link, call)) {
      // Of a request with many arguments it may be long.
      while (head.size() > head.front().size()) {
        stats_->bytes_sent.add(head.front().size());
        link->write(head.front());
        head.consume(head.front().size());
      }
      begin_upload(*link, call, head.front());
      call.body_source->resume_body(call);
    }
  }
  wait_timer_.cancel();
}

void Backend::on_wait_timer() {
  const auto limit = static_cast<std::int32_t>(upload_wait_max().count());
  while (!waiting_.empty()) {
    const auto waited = static_cast<std::int32_t>(now_ms() - waiting_.front()->sent_at_ms);
    if (waited < limit) {
      loop_.timers().arm(wait_timer_, loop_.now() + base::Millis(limit - waited));
      return;
    }
    Call& call = *waiting_.pop_front();
    call.stash.clear();
    call.body_sink = nullptr;
    call.body_waits = false;
    refuse(call, Failure{.kind = FailureKind::Overload, .error = 0, .may_have_run = false});
  }
}

Flow Backend::on_body(Call& /*call*/, std::string_view /*bytes*/, bool /*is_last*/) {
  KVF_CHECK(false);  // Nothing may be passed while body_waits.
  return Flow::Pause;
}

void Backend::on_body_lost(Call& call) {
  CallFifo kept;
  while (Call* waiting = waiting_.pop_front()) {
    if (waiting != &call) {
      kept.push_back(*waiting);
    }
  }
  waiting_ = kept;
  call.stash.clear();
  call.body_sink = nullptr;
  refuse(call, Failure{.kind = FailureKind::Draining, .error = 0, .may_have_run = false});
}

void Backend::configure(Setup setup) {
  // Files that were read anew are for new connections; other settings are for all.
  const bool speaks_otherwise =
      (setup.tls == nullptr) != (setup_.tls == nullptr) ||
      (setup.tls != nullptr && setup.tls->options() != setup_.tls->options()) ||
      setup.greeting != setup_.greeting;
  const bool has_moved =
      (!(setup.address == setup_.address) && setup_.address.is_set()) || speaks_otherwise;
  setup_ = std::move(setup);
  if (has_moved) {
    for (auto& link : links_) {
      set_aside(link);
    }
    for (auto& link : uploads_) {
      link->retire();
    }
  }
  while (links_.size() < options().server_connections) {
    links_.push_back(std::make_unique<Link>(*this, loop_, Link::Use::Shared));
  }
  while (links_.size() > options().server_connections) {
    set_aside(links_.back());
    links_.pop_back();
  }
  for (Links* links : {&links_, &uploads_}) {
    for (auto& link : *links) {
      link->follow_options();
      if (!setup_.health->is_down()) {
        // Something is known anew (an address, a probe): the next call may try at once.
        link->clear_backoff();
      }
    }
  }
}

void Backend::preconnect() {
  for (auto& link : links_) {
    link->preconnect();
  }
}

void Backend::set_aside(std::unique_ptr<Link>& link) {
  link->retire();
  aside_.push_back(std::move(link));
  link = std::make_unique<Link>(*this, loop_, Link::Use::Shared);
  loop_.defer(reap_task_);
}

void Backend::retire() {
  is_retired_ = true;
  for (auto& link : links_) {
    link->retire();
  }
  for (auto& link : uploads_) {
    link->retire();
  }
}

void Backend::shut() {
  while (Call* call = waiting_.pop_front()) {
    call->stash.clear();
    call->body_sink = nullptr;
    refuse(*call, Failure{.kind = FailureKind::Draining, .error = 0, .may_have_run = false});
  }
  for (Links* links : {&links_, &uploads_, &aside_}) {
    for (auto& link : *links) {
      link->retire();
      link->shut(FailureKind::Draining);
    }
  }
}

bool Backend::is_drained() const {
  const auto is_empty = [](const std::unique_ptr<Link>& link) { return link->is_empty(); };
  return waiting_.empty() && std::all_of(links_.begin(), links_.end(), is_empty) &&
         std::all_of(uploads_.begin(), uploads_.end(), is_empty) &&
         std::all_of(aside_.begin(), aside_.end(), is_empty);
}

std::size_t Backend::queued_bytes() const {
  std::size_t bytes = 0;
  for (const Links* links : {&links_, &uploads_, &aside_}) {
    for (const auto& link : *links) {
      bytes += link->queued_bytes();
    }
  }
  return bytes;
}

void Backend::on_link_proven(Link& /*link*/) {
  if (options().on_down == OnDown::Keep) {
    setup_.health->on_probed();  // Nobody probes where nothing is ejected: a reply is the proof.
  } else {
    setup_.health->on_reply();
  }
}

bool Backend::wants_reconnect() const {
  // An ejected backend is left alone until a probe has found it well.
  return setup_.address.is_set() &&
         (options().on_down == OnDown::Keep || !setup_.health->is_down());
}

bool Backend::secure(net::Stream& stream) {
  return setup_.tls == nullptr || stream.start_tls(setup_.tls, setup_.server.host);
}

void Backend::on_link_failed(Link& /*link*/, const Failure& failure) {
  events_.on_backend_failure(options(), setup_.server, failure);
  if (setup_.health->on_failure()) {
    events_.on_backend_down(options(), setup_.server);
  }
}

void Backend::on_link_stalled(Link& link) {
  const auto place = std::find_if(links_.begin(), links_.end(),
                                  [&](const auto& owned) { return owned.get() == &link; });
  if (place == links_.end()) {
    return;  // An exclusive link, which blocks nobody, or one that stands aside already.
  }
  stats_->stalls.add(1);
  set_aside(*place);
}

void Backend::on_link_empty(Link& link) {
  if (link.is_retired() || link.use() == Link::Use::Exclusive) {
    loop_.defer(reap_task_);
  }
}

void Backend::reap() {
  const auto is_gone = [](const std::unique_ptr<Link>& link) {
    return link->is_retired() && link->is_empty();
  };
  std::erase_if(aside_, is_gone);
  std::erase_if(uploads_, is_gone);
  start_waiting_uploads();
  std::size_t idle = 0;
  std::erase_if(uploads_, [&](const std::unique_ptr<Link>& link) {
    return link->is_empty() && ++idle > kUploadLinksIdleMax;
  });
}

}  // namespace kvferry::pool
