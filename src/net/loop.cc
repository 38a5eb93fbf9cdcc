#include "net/loop.h"

#include <cerrno>
#include <ctime>
#include <new>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "net/epoll_engine.h"
#include "net/tls_filter.h"
#include "net/uring_engine.h"

namespace kvferry::net {
namespace {

/// Flushing may make streams dirty again (a failed send answers others). Some of that is settled in
/// the same turn, the rest in the next.
constexpr int kFlushRoundsMax = 4;
/// Pools look back two periods, so that the third trim after the last activity finds them idle.
constexpr unsigned kTrimsAfterActivity = 3;
constexpr base::Millis kTrimInterval{1000};
/// A Lingering stream is closed after one to two of these.
constexpr base::Millis kLingerInterval{500};

/// Hears what happens to streams whose owner has left.
class Nobody final : public StreamHandler {
 public:
  void on_data(std::string_view /*bytes*/) override {}
  void on_end() override {}
  void on_closed(int /*error*/) override {}
};
Nobody nobody;

}  // namespace

base::Result<std::unique_ptr<Loop>> Loop::open(const LoopOptions& options,
                                               base::MemoryBudget& budget) {
  if (options.io == Io::Epoll) {
    return EpollEngine::open(budget);
  }
  auto uring = UringEngine::open(options, budget);
  if (uring.has_value() || options.io == Io::Uring) {
    return uring;
  }
  auto epoll = EpollEngine::open(budget);
  if (epoll.has_value()) {
    (*epoll)->fallback_reason_ = uring.error().text();
  }
  return epoll;
}

Loop::Loop(base::MemoryBudget& budget, int wake_fd)
    : now_(std::chrono::steady_clock::now()),
      timers_(now_),
      blocks_(budget),
      hulls_(sizeof(Stream), budget),
      trim_timer_(Timer::Callback::to<&Loop::on_trim_due>(this)),
      linger_timer_(Timer::Callback::to<&Loop::on_linger_due>(this)),
      mailbox_(std::make_shared<Mailbox>(wake_fd)) {}

Loop::~Loop() {
  mailbox_->close();
}

void Loop::run() {
  while (!is_stopping_.load(std::memory_order_acquire)) {
    run_turn(true);
  }
  is_stopping_.store(false, std::memory_order_relaxed);
  submit();
}

void Loop::keep_pace() {
  const base::Micros pace = pace_();
  if (pace.count() == 0) {
    return;
  }
  const auto elapsed =
      std::chrono::duration_cast<base::Micros>(std::chrono::steady_clock::now() - now_);
  if (elapsed < pace) {
    linger(pace - elapsed);
  }
}

void Loop::linger(base::Micros length) {
  submit();
  const timespec time{.tv_sec = 0, .tv_nsec = std::min<long>(length.count() * 1000, 999'999'999)};
  ::nanosleep(&time, nullptr);
}

void Loop::run_turn(bool wait) {
  if (wait && pace_ && !has_work()) {
    keep_pace();
  }
  take_events(wait && !has_work() ? timers_.sleep_max(now_) : base::Millis(0));
  timers_.advance(now_);
  if (is_woken_) {
    run_messages();
  }
  if (!tasks_[tasks_open_].empty()) {
    run_tasks();
  }
  flush_all();
}

void Loop::stop() noexcept {
  is_stopping_.store(true, std::memory_order_release);
  mailbox_->wake();
}

void Loop::post(std::function<void()> message) {
  mailbox_->post(std::move(message));
}

bool Loop::has_work() const noexcept {
  return flush_queue_.head != nullptr || !tasks_[tasks_open_].empty();
}

void Loop::run_messages() {
  is_woken_ = false;
  for (const Mailbox::Message& message : mailbox_->take()) {
    message();
  }
}

void Loop::run_tasks() {
  TaskList& running = tasks_[tasks_open_];
  tasks_open_ ^= 1;
  while (Task* task = running.pop_front()) {
    task->callback_();
  }
}

void Loop::flush_all() {
  for (int round = 0; round < kFlushRoundsMax && flush_queue_.head != nullptr; ++round) {
    Stream* stream = std::exchange(flush_queue_.head, nullptr);
    while (stream != nullptr) {
      // A hull is freed only when it is taken from the queue, so `next` stays valid whatever the
      // handlers do.
      Stream* next = stream->next_dirty_;
      stream->is_dirty_ = false;
      flush_stream(*stream);
      stream = next;
    }
  }
}

Stream& Loop::make_stream(int fd, Stream::Phase phase) {
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): hulls_ owns the memory; see free_stream()
  auto* const stream = new (hulls_.acquire()) Stream(*this, blocks_, flush_queue_, fd, phase);
  streams_.push_back(*stream);
  return *stream;
}

void Loop::free_stream(Stream& stream) noexcept {
  KVF_DCHECK(!stream.is_dirty_ && stream.fd_ == -1 && stream.ops_ == 0);
  stream.unlink();
  stream.~Stream();
  hulls_.release(&stream);
}

bool Loop::may_shake() const noexcept {
  return shaken_at_ != now_ || shaken_ < kTlsHandshakesPerTurn;
}

std::string_view Loop::tls_peer_name(int fd) const noexcept {
  const auto found = tls_peers_.find(fd);
  return found == tls_peers_.end() ? std::string_view{} : std::string_view(found->second);
}

void Loop::note_shaken() noexcept {
  if (shaken_at_ != now_) {
    shaken_at_ = now_;
    shaken_ = 0;
  }
  ++shaken_;
}

void Loop::release_stream(Stream& stream) noexcept {
  if (stream.tls_ != nullptr) {
    stream.tls_->say_goodbye();
  }
  stream.has_owner_ = false;
  stream.handler_ = nullptr;
  stream.output_.clear();
  if (stream.is_live()) {
    stream.phase_ = Stream::Phase::Closed;
    abandon(stream);
  }
  stream.mark_dirty();
}

void Loop::drain_without_owner(Stream& stream) noexcept {
  stream.has_owner_ = false;
  stream.set_handler(nobody);
  stream.is_paused_ = false;
  stream.close_after_output();
  linger_on(stream);
}

/// Its time is limited from now on.
void Loop::linger_on(Stream& stream) noexcept {
  stream.unlink();
  lingering_[linger_young_].push_back(stream);
  if (!linger_timer_.is_armed()) {
    timers_.arm(linger_timer_, now_ + kLingerInterval);
  }
}

void Loop::fail_stream(Stream& stream, int error) noexcept {
  const bool was_live = stream.is_live();
  stream.phase_ = Stream::Phase::Closed;
  stream.output_.clear();
  stream.stash_.clear();
  abandon(stream);
  stream.mark_dirty();
  if (was_live) {
    stream.handler_->on_closed(error);
  }
}

void Loop::finish_draining(Stream& stream, int error) noexcept {
  if (stream.is_ended_ || ::shutdown(stream.fd_, SHUT_WR) != 0) {
    fail_stream(stream, error);
    return;
  }
  stream.phase_ = Stream::Phase::Lingering;
  linger_on(stream);
  stream.mark_dirty();
  stream.handler_->on_closed(error);
}

void Loop::on_linger_due() {
  linger_young_ ^= 1;
  StreamList& old = lingering_[linger_young_];
  while (Stream* stream = old.front()) {
    stream->unlink();
    streams_.push_back(*stream);
    const bool is_left = stream->is_live() && !stream->has_owner_;
    if (stream->phase_ == Stream::Phase::Lingering || is_left) {
      note_activity();  // What it holds becomes free now, maybe long after the last event.
      fail_stream(*stream, 0);
    }
  }
  if (!lingering_[linger_young_ ^ 1].empty()) {
    timers_.arm(linger_timer_, now_ + kLingerInterval);
  }
}

void Loop::note_activity() noexcept {
  trims_left_ = kTrimsAfterActivity;
  if (!trim_timer_.is_armed()) {
    timers_.arm(trim_timer_, now_ + kTrimInterval);
  }
}

void Loop::on_trim_due() {
  blocks_.trim();
  hulls_.trim();
  if (--trims_left_ > 0) {
    timers_.arm(trim_timer_, now_ + kTrimInterval);
  }
}

void Loop::abandon_all() noexcept {
  for (StreamList* list : {&streams_, lingering_.data(), &lingering_[1]}) {
    abandon_each(*list);
  }
}

void Loop::abandon_each(StreamList& list) noexcept {
  for (Stream* stream = list.front(); stream != nullptr; stream = list.next(*stream)) {
    KVF_CHECK(!stream->has_owner_);
    if (stream->phase_ != Stream::Phase::Closed) {
      stream->phase_ = Stream::Phase::Closed;
      abandon(*stream);
    }
    stream->mark_dirty();
  }
}

void Loop::free_all_hulls() noexcept {
  flush_queue_.head = nullptr;
  for (StreamList* list : {&streams_, lingering_.data(), &lingering_[1]}) {
    while (Stream* stream = list->front()) {
      if (stream->fd_ >= 0) {
        ::close(std::exchange(stream->fd_, -1));
      }
      stream->ops_ = 0;
      stream->is_dirty_ = false;
      free_stream(*stream);
    }
  }
}

}  // namespace kvferry::net
