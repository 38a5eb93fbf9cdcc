#include "front/service.h"

#include <new>
#include <utility>

#include "base/check.h"
#include "front/resp_client.h"
#include "front/session.h"

namespace kvferry::front {
namespace {

/// Room for replies to clients of Redis that is kept from one second to the next.
constexpr std::size_t kScratchBytesKept = std::size_t{64} * 1024;
constexpr std::string_view kTooManyLine = "ERROR Too many open connections\r\n";

}  // namespace

std::size_t session_bytes() noexcept {
  return sizeof(Session);
}

Service::Service(const ServiceContext& context, ServiceOptions options, call::Target& target,
                 ClientLimit& process_limit, std::shared_ptr<ClientLimit> listener_limit)
    : context_(context),
      options_(std::move(options)),
      target_(&target),
      process_limit_(process_limit),
      listener_limit_(std::move(listener_limit)),
      stats_(std::make_shared<ServiceStats>()) {}

Service::~Service() {
  KVF_CHECK(live_ == 0);
}

void Service::on_accepted(net::StreamPtr stream, const net::Address& address) {
  const PeerAddress peer = PeerAddress::of(address, stream->fd());
  if (watch::Hub* hub = context_.watch; hub != nullptr && hub->wants(watch::Stream::ConnEvents)) {
    hub->write(watch::Stream::ConnEvents, conn_new_fields(peer));
  }
  const bool has_entered_listener = listener_limit_->try_enter();
  const bool has_entered = has_entered_listener && process_limit_.try_enter();
  if (has_entered_listener && !has_entered) {
    listener_limit_->leave();
  }
  if (options_.tls != nullptr && !(has_entered && stream->start_tls(options_.tls))) {
    refuse_handshake(peer, has_entered);
    return;
  }
  auto* session = new (context_.sessions.acquire())
      Session(*this, std::move(stream), next_lane_++, has_entered);
  session->set_peer(peer);
  sessions_.push_back(*session);
  ++live_;
  if (!has_entered) {
    stats_->connections_rejected.add(1);
    session->reject(options_.resp.is_only ? RespClient::kTooManyLine : kTooManyLine);
    return;
  }
  stats_->connections.add(1);
  stats_->connections_accepted.add(1);
  if (is_draining_) {
    session->drain();
  }
}

/// A client that is refused is worth no handshake, and can read no line without one.
void Service::refuse_handshake(const PeerAddress& peer, bool has_entered) {
  if (has_entered) {
    listener_limit_->leave();
    process_limit_.leave();
  }
  stats_->connections_rejected.add(1);
  if (watch::Hub* hub = context_.watch; hub != nullptr && hub->wants(watch::Stream::ConnEvents)) {
    hub->write(watch::Stream::ConnEvents, conn_close_fields(peer, "error"));
  }
}

void Service::configure(const ServiceOptions& options, call::Target& target) {
  options_ = options;
  target_ = &target;
}

void Service::release(Session& session) {
  if (session.is_counted()) {
    stats_->connections.sub(1);
    listener_limit_->leave();
    process_limit_.leave();
  }
  session.unlink();
  --live_;
  session.~Session();
  context_.sessions.release(&session);
}

void Service::report_closed(const Session& session, std::string_view reason) const {
  if (watch::Hub* hub = context_.watch; hub != nullptr && hub->wants(watch::Stream::ConnEvents)) {
    hub->write(watch::Stream::ConnEvents, conn_close_fields(session.peer(), reason));
  }
}

void Service::drain() {
  is_draining_ = true;
  for (Session* session = sessions_.front(); session != nullptr;) {
    Session* next = sessions_.next(*session);
    session->drain();
    session = next;
  }
}

void Service::close_all() {
  is_draining_ = true;
  for (Session* session = sessions_.front(); session != nullptr;) {
    Session* next = sessions_.next(*session);
    session->abort("shutdown");
    session = next;
  }
}

BinaryDesk& Service::binary_desk() {
  if (binary_desk_ == nullptr) {
    binary_desk_ = std::make_unique<BinaryDesk>(context_.budget);
  }
  return *binary_desk_;
}

void Service::keep_house() {
  if (binary_desk_ != nullptr) {
    binary_desk_->trim();
  }
  for (std::string* const text : {&resp_reply_, &resp_scratch_}) {
    if (text->capacity() > kScratchBytesKept) {
      std::string().swap(*text);
    }
  }
  if (options_.idle_timeout.count() == 0) {
    return;
  }
  const base::SteadyTime oldest = context_.loop.now() - options_.idle_timeout;
  for (Session* session = sessions_.front(); session != nullptr;) {
    Session* next = sessions_.next(*session);
    if (session->is_idle_since(oldest)) {
      session->abort("idle_timeout");
    }
    session = next;
  }
}

}  // namespace kvferry::front
