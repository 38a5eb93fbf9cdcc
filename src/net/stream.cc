#include "net/stream.h"

#include "net/loop.h"
#include "net/tls_filter.h"

namespace kvferry::net {

void StreamDeleter::operator()(Stream* stream) const noexcept {
  stream->loop_->release_stream(*stream);
}

void Stream::set_handler(StreamHandler& handler) noexcept {
  if (tls_ == nullptr) {
    handler_ = &handler;
  } else {
    tls_->set_inner(handler);
  }
}

void Stream::close_after_output() noexcept {
  if (phase_ == Phase::Connecting) {
    // Remembered by the flush that follows the connect.
    closes_after_output_ = true;
  } else if (phase_ == Phase::Open && tls_ != nullptr && tls_->is_shaking() && !output_.empty()) {
    // What was written cannot be sent before the handshake is done, which needs input.
    closes_after_output_ = true;
    is_paused_ = false;
  } else if (phase_ == Phase::Open) {
    phase_ = Phase::Draining;
  }
  mark_dirty();
}

void Stream::leave(StreamPtr stream) noexcept {
  if (stream->phase_ == Phase::Open || stream->phase_ == Phase::Draining) {
    Stream& left = *stream.release();
    left.loop_->drain_without_owner(left);
  }
}

}  // namespace kvferry::net
