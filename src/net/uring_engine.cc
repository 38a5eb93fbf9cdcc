#include "net/uring_engine.h"

#include <cerrno>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "net/socket.h"
#include "net/tls_filter.h"

namespace kvferry::net {
namespace {

using base::Error;
using base::Result;

/// How long the end of a loop waits for the kernel to give up what is in flight.
constexpr int kLastRoundsMax = 100;
constexpr base::Millis kLastRoundWait{10};

/// Posts from other threads, by reading the eventfd again and again.
class WakeSource final : public UringSource {
 public:
  WakeSource(UringEngine& engine, int fd) : engine_(engine), fd_(fd) {}

  void arm() noexcept {
    io_uring_sqe* entry = engine_.ring().next();
    io_uring_prep_read(entry, fd_, &count_, sizeof(count_), 0);
    engine_.start(*this, entry);
  }
  void on_completion(int, bool) override {
    if (!engine_.is_ending()) {
      engine_.woken();
      arm();
    }
  }

 private:
  UringEngine& engine_;
  int fd_;
  std::uint64_t count_ = 0;
};

}  // namespace

Result<std::unique_ptr<Loop>> UringEngine::open(const LoopOptions& options,
                                                base::MemoryBudget& budget) {
  auto features = probe_uring(options.uring_features_off);
  if (!features) {
    return std::move(features).error();
  }
  auto ring = UringRing::open(options.receive_buffers, *features, budget);
  if (!ring) {
    return std::move(ring).error();
  }
  Fd wake_fd(eventfd(0, EFD_CLOEXEC));
  if (!wake_fd.is_set()) {
    return Error::from_errno("cannot make an event loop", errno);
  }
  return std::unique_ptr<Loop>(new UringEngine(budget, wake_fd.release(), std::move(ring).value()));
}

UringEngine::UringEngine(base::MemoryBudget& budget, int wake_fd, std::unique_ptr<UringRing> ring)
    : Loop(budget, wake_fd), ring_(std::move(ring)) {
  auto wake = std::make_unique<WakeSource>(*this, wake_fd);
  wake->arm();
  wake_ = std::move(wake);
}

UringEngine::~UringEngine() {
  is_ending_ = true;
  abandon_all();
  cancel(*wake_);
  bury(std::move(wake_));
  flush_all();
  for (int i = 0; i < kLastRoundsMax && is_usable_; ++i) {
    if (stream_count() == 0 && buried_.empty()) {
      break;
    }
    take_events(kLastRoundWait);
    flush_all();
  }
  // Only on a thread that may not use the ring: that of run() has ended, and the kernel has ended
  // its operations with it.
  free_all_hulls();
}

void UringEngine::take_events(base::Millis sleep_max) {
  // After lingering there may be no need to ask the kernel again.
  is_usable_ =
      (std::exchange(has_lingered_, false) && ring_->has_completions()) || ring_->wait(sleep_max);
  KVF_CHECK(is_usable_ || is_ending_);
  start_turn();
  if (reap() != 0) {
    note_activity();
  }
  if (!quiet_.empty()) {
    settle_quiet_sends();
  }
  if (!buried_.empty()) {
    std::erase_if(buried_, [](const auto& source) { return !source->is_in_flight; });
  }
}

void UringEngine::linger(base::Micros length) {
  ring_->linger(length);
  has_lingered_ = true;
}

unsigned UringEngine::reap() {
  unsigned head = 0;
  unsigned count = 0;
  io_uring_cqe* entry = nullptr;
  io_uring_for_each_cqe(ring_->get(), head, entry) {
    ++count;
    dispatch(entry->user_data, entry->res, entry->flags);
  }
  io_uring_cq_advance(ring_->get(), count);
  return count;
}

void UringEngine::dispatch(std::uint64_t data, int result, unsigned flags) {
  // NOLINTBEGIN(performance-no-int-to-ptr): the kernel keeps 64 bits for us, these are a pointer
  void* object = reinterpret_cast<void*>(static_cast<std::uintptr_t>(data) & ~kTagMask);
  // NOLINTEND(performance-no-int-to-ptr)
  switch (static_cast<Tag>(data & kTagMask)) {
    case kReceive:
      on_receive(*static_cast<Stream*>(object), result, flags);
      return;
    case kSend:
      on_send(*static_cast<Stream*>(object), result);
      return;
    case kConnect:
      on_connect(*static_cast<Stream*>(object));
      return;
    case kSource: {
      auto* source = static_cast<UringSource*>(object);
      source->is_in_flight = (flags & IORING_CQE_F_MORE) != 0;
      source->on_completion(result, source->is_in_flight);
      return;
    }
    case kIgnored:
      return;
  }
}

void UringEngine::on_receive(Stream& stream, int result, unsigned flags) {
  if ((flags & IORING_CQE_F_MORE) == 0) {
    stream.ops_ &= static_cast<std::uint8_t>(~op_bit(kReceive));
    stream.is_cancelling_ = false;
    stream.mark_dirty();  // The flush arms it again, or frees the hull.
  }
  if ((flags & IORING_CQE_F_BUFFER) != 0) {
    const unsigned id = flags >> IORING_CQE_BUFFER_SHIFT;
    if (result > 0) [[likely]] {
      deliver(stream, {ring_->buffer(id), static_cast<std::size_t>(result)});
    }
    ring_->return_buffer(id);
  }
  if (result > 0 || stream.phase_ == Stream::Phase::Closed) {
    return;
  }
  if (result == 0) {
    on_end(stream);
  } else if (result != -ENOBUFS && result != -ECANCELED && result != -EAGAIN && result != -EINTR) {
    // Without buffers the receive is armed again by the flush, when this turn has returned some.
    fail_stream(stream, -result);
  }
}

void UringEngine::deliver(Stream& stream, std::string_view bytes) {
  if (stream.phase_ != Stream::Phase::Open) [[unlikely]] {
    return;
  }
  if (stream.is_paused_ || !stream.stash_.empty()) [[unlikely]] {
    stream.stash_.append(*stream.blocks_, bytes);
    return;
  }
  stream.handler_->on_data(bytes);
}

void UringEngine::on_end(Stream& stream) {
  stream.is_ended_ = true;
  if (stream.phase_ == Stream::Phase::Lingering) {
    fail_stream(stream, 0);
  } else if (stream.phase_ == Stream::Phase::Open) {
    if (stream.is_paused_ || !stream.stash_.empty()) {
      stream.owes_end_ = true;
    } else {
      stream.handler_->on_end();
    }
  }
}

void UringEngine::deliver_stash(Stream& stream) {
  while (!stream.stash_.empty()) {
    if (stream.is_paused_ || stream.phase_ != Stream::Phase::Open) {
      return;
    }
    // Taken out first: the handler may drop the stream, and with it the stash.
    base::ByteChain run;
    run.splice(*stream.blocks_, stream.stash_, stream.stash_.front().size());
    stream.handler_->on_data(run.front());
  }
  if (stream.owes_end_ && !stream.is_paused_ && stream.phase_ == Stream::Phase::Open) {
    stream.owes_end_ = false;
    stream.handler_->on_end();
  }
}

void UringEngine::on_connect(Stream& stream) {
  stream.ops_ &= static_cast<std::uint8_t>(~op_bit(kConnect));
  stream.mark_dirty();
  if (stream.phase_ != Stream::Phase::Connecting) {
    return;
  }
  const int error = take_socket_error(stream.fd_);
  if (error != 0) {
    fail_stream(stream, error);
    return;
  }
  // io_uring does the waiting; on a non-blocking socket it would answer EAGAIN instead.
  set_non_blocking(stream.fd_, false);
  stream.phase_ = stream.closes_after_output_ && stream.tls_ == nullptr ? Stream::Phase::Draining
                                                                        : Stream::Phase::Open;
  if (stream.phase_ == Stream::Phase::Open) {
    stream.handler_->on_connected();
  }
}

void UringEngine::flush_stream(Stream& stream) {
  if (stream.phase_ == Stream::Phase::Closed) {
    flush_closed(stream);
    return;
  }
  if (stream.phase_ == Stream::Phase::Connecting) {
    if (stream.error_ != 0) {
      fail_stream(stream, stream.error_);
    } else if (!is_doing(stream, kConnect)) {
      arm_connect(stream);
    }
    return;
  }
  if (stream.tls_ != nullptr) [[unlikely]] {
    stream.tls_->deliver_held();
    if (stream.phase_ == Stream::Phase::Closed) {
      return;
    }
  }
  if (!stream.stash_.empty() || stream.owes_end_) [[unlikely]] {
    deliver_stash(stream);
    if (stream.phase_ == Stream::Phase::Closed) {
      return;
    }
  }
  const bool wants_input = stream.wants_input() && stream.stash_.empty();
  if (wants_input != is_doing(stream, kReceive)) {
    if (wants_input) {
      arm_receive(stream);
    } else if (!stream.is_cancelling_) {
      stream.is_cancelling_ = true;
      cancel(stream, kReceive);
    }
  }
  flush_output(stream);
}

void UringEngine::flush_output(Stream& stream) {
  if (!is_doing(stream, kSend)) {
    if (stream.tls_ != nullptr) [[unlikely]] {
      start_tls_send(stream);
    } else if (!stream.output_.empty()) {
      start_send(stream);
    } else if (stream.phase_ == Stream::Phase::Draining) {
      finish_draining(stream);
    }
  } else if (stream.is_quiet_ &&
             (!stream.output_.empty() || stream.phase_ == Stream::Phase::Draining ||
              (stream.tls_ != nullptr && stream.tls_->has_wire()))) {
    // More to do after a send that makes no completion: the loop must not go to sleep before.
    stream.mark_dirty();
  }
}

void UringEngine::flush_closed(Stream& stream) noexcept {
  stream.output_.clear();
  stream.stash_.clear();
  if (stream.ops_ != 0) {
    if (is_doing(stream, kSend) && stream.is_quiet_) {
      // It makes no completion, so the loop must not go to sleep before it has been settled.
      stream.mark_dirty();
    }
    if (!std::exchange(stream.is_abandoned_, true)) {
      cancel_all(stream);
    }
    return;
  }
  if (stream.fd_ >= 0) {
    ::close(std::exchange(stream.fd_, -1));
  }
  if (is_unsettled_) {
    stream.mark_dirty();  // The list of quiet sends may still name it.
  } else if (!stream.has_owner_) {
    free_stream(stream);
  }
}

// The flush that follows cancels what is in flight, and closes the descriptor in the end.
void UringEngine::abandon(Stream&) noexcept {}

void UringEngine::begin(Stream& stream, Tag tag, io_uring_sqe* entry) noexcept {
  io_uring_sqe_set_data64(entry, user_data(&stream, tag));
  stream.ops_ |= op_bit(tag);
}

void UringEngine::cancel_all(Stream& stream) noexcept {
  for (const Tag tag : {kReceive, kSend, kConnect}) {
    if (is_doing(stream, tag) && !(tag == kSend && stream.is_quiet_)) {
      cancel(stream, tag);
    }
  }
}

void UringEngine::cancel(Stream& stream, Tag tag) noexcept {
  io_uring_sqe* entry = ring_->next();
  io_uring_prep_cancel64(entry, user_data(&stream, tag), 0);
  io_uring_sqe_set_data64(entry, kIgnored);
}

void UringEngine::arm_receive(Stream& stream) noexcept {
  io_uring_sqe* entry = ring_->next();
  if (ring_->features().multishot_receive) {
    io_uring_prep_recv_multishot(entry, stream.fd_, nullptr, 0, 0);
  } else {
    io_uring_prep_recv(entry, stream.fd_, nullptr, kRingBufferBytes, 0);
  }
  entry->flags |= IOSQE_BUFFER_SELECT;
  begin(stream, kReceive, entry);
}

void UringEngine::arm_connect(Stream& stream) noexcept {
  io_uring_sqe* entry = ring_->next();
  io_uring_prep_poll_add(entry, stream.fd_, POLLOUT);
  begin(stream, kConnect, entry);
}

void UringEngine::start_send(Stream& stream) noexcept {
  note_output(stream);
  stream.sending_ = std::move(stream.output_);
  // Whoever waits for the end of this send needs its completion.
  submit_send(stream, stream.phase_ == Stream::Phase::Open && !stream.owes_drained_);
}

void UringEngine::start_tls_send(Stream& stream) {
  note_output(stream);
  stream.tls_->encrypt();
  if (stream.phase_ == Stream::Phase::Closed) {
    return;
  }
  if (!stream.sending_.empty()) {
    submit_send(stream, stream.phase_ == Stream::Phase::Open && !stream.owes_drained_);
  } else if (stream.phase_ == Stream::Phase::Draining) {
    finish_draining(stream);
  }
}

void UringEngine::submit_send(Stream& stream, bool may_be_quiet) noexcept {
  const base::ByteChain& chain = stream.sending_;
  const std::string_view front = chain.front();
  int flags = MSG_NOSIGNAL | MSG_WAITALL;
  bool is_whole = true;
  UringRing::GatherList* list = nullptr;
  if (front.size() != chain.size()) [[unlikely]] {
    list = &ring_->next_gather_list();
    list->message = {};
    list->message.msg_iov = list->parts.data();
    list->message.msg_iovlen = chain.gather(list->parts.data(), list->parts.size());
    is_whole = list->message.msg_iovlen < list->parts.size();
  }
  stream.is_quiet_ = may_be_quiet && is_whole && ring_->features().quiet_send;
  if (stream.is_quiet_) {
    flags |= MSG_DONTWAIT;
    quiet_.push_back(&stream);
  }
  io_uring_sqe* entry = ring_->next();
  if (list == nullptr) {
    io_uring_prep_send(entry, stream.fd_, front.data(), front.size(), flags);
  } else {
    io_uring_prep_sendmsg(entry, stream.fd_, &list->message, static_cast<unsigned>(flags));
  }
  if (stream.is_quiet_) {
    entry->flags |= IOSQE_CQE_SKIP_SUCCESS;
  }
  begin(stream, kSend, entry);
}

void UringEngine::on_send(Stream& stream, int result) {
  stream.ops_ &= static_cast<std::uint8_t>(~op_bit(kSend));
  stream.is_quiet_ = false;
  if (stream.phase_ == Stream::Phase::Closed) {
    stream.sending_.clear();
    stream.mark_dirty();
    return;
  }
  if (result < 0 && result != -EAGAIN && result != -EINTR) {
    stream.sending_.clear();
    fail_stream(stream, -result);
    return;
  }
  // What was written while this send was under way counts too: its writer may have stopped because
  // of it.
  note_output(stream);
  if (result > 0) {
    stream.sending_.consume(static_cast<std::size_t>(result));
  }
  if (!stream.sending_.empty()) {
    submit_send(stream, false);
    report_drained(stream);
    return;
  }
  finish_send(stream);
}

void UringEngine::finish_send(Stream& stream) {
  if (!stream.output_.empty() || stream.phase_ == Stream::Phase::Draining ||
      (stream.tls_ != nullptr && stream.tls_->has_wire())) {
    stream.mark_dirty();
  }
  report_drained(stream);
}

void UringEngine::settle_quiet_sends() {
  is_unsettled_ = !ring_->is_settled();
  if (is_unsettled_) [[unlikely]] {
    return;  // A complaint may be on its way.
  }
  for (Stream* stream : quiet_) {
    if (!stream->is_quiet_) {
      continue;  // It complained, and has been dealt with.
    }
    stream->is_quiet_ = false;
    stream->ops_ &= static_cast<std::uint8_t>(~op_bit(kSend));
    note_output(*stream);
    stream->sending_.clear();
    if (stream->phase_ == Stream::Phase::Closed) {
      stream->mark_dirty();
      continue;
    }
    if (!stream->output_.empty() || stream->phase_ == Stream::Phase::Draining) {
      stream->mark_dirty();
    }
    report_drained(*stream);
  }
  quiet_.clear();
}

Result<StreamPtr> UringEngine::connect(const Address& address, const ConnectOptions& options,
                                       StreamHandler& handler) {
  auto attempt = start_connect(address, options);
  if (!attempt) {
    return std::move(attempt).error();
  }
  Stream& stream = make_stream(attempt->fd.release(), Stream::Phase::Connecting);
  stream.handler_ = &handler;
  stream.error_ = attempt->error == EINPROGRESS ? 0 : attempt->error;
  stream.mark_dirty();
  return StreamPtr(&stream);
}

void UringEngine::accepted(int fd, AcceptHandler& handler) {
  Stream& stream = make_stream(fd, Stream::Phase::Open);
  handler.on_accepted(StreamPtr(&stream), peer_address(fd));
  KVF_CHECK(stream.handler_ != nullptr || !stream.has_owner_);
  stream.mark_dirty();  // The flush arms the receive.
}

void UringEngine::start(UringSource& source, io_uring_sqe* entry) noexcept {
  io_uring_sqe_set_data64(entry, user_data(&source, kSource));
  source.is_in_flight = true;
}

void UringEngine::cancel(UringSource& source) noexcept {
  if (source.is_in_flight) {
    io_uring_sqe* entry = ring_->next();
    io_uring_prep_cancel64(entry, user_data(&source, kSource), 0);
    io_uring_sqe_set_data64(entry, kIgnored);
  }
}

}  // namespace kvferry::net
