#include "admin/connection.h"

#include <utility>

#include "base/check.h"

namespace kvferry::admin {

AdminServer::Connection::Connection(AdminServer& server, net::StreamPtr stream)
    : server_(server),
      stream_(std::move(stream)),
      deadline_(net::Timer::Callback::to<&Connection::on_idle>(this)) {
  stream_->set_handler(*this);
  stream_->set_drain_notice(kAdminOutputBytesMax);
  push_deadline();
}

void AdminServer::Connection::on_data(std::string_view bytes) {
  if (phase_ == Phase::Closing) {
    return;
  }
  input_ += bytes;
  if (phase_ == Phase::Reading) {
    answer_requests();
  }
}

void AdminServer::Connection::on_end() {
  has_ended_ = true;
  if (phase_ == Phase::Reading) {
    close_after_answers();
  }
}

void AdminServer::Connection::on_closed(int /*error*/) {
  server_.forget(*this);
}

void AdminServer::Connection::on_drained() {
  if (phase_ != Phase::Waiting) {
    return;
  }
  phase_ = Phase::Reading;
  push_deadline();
  answer_requests();
  if (phase_ != Phase::Reading) {
    return;
  }
  if (has_ended_) {
    close_after_answers();
  } else {
    stream_->resume_reading();
  }
}

void AdminServer::Connection::answer_requests() {
  while (phase_ == Phase::Reading && answer_next()) {
    if (phase_ == Phase::Reading && stream_->output_bytes() > kAdminOutputBytesMax) {
      phase_ = Phase::Waiting;
      stream_->pause_reading();
    }
  }
}

bool AdminServer::Connection::answer_next() {
  const http::RequestParser::Outcome outcome = parser_.parse(input_);
  if (outcome.is_need_more()) {
    if (parser_.wants_continue() && !sent_continue_) {
      sent_continue_ = true;
      stream_->write(http::kContinue);
    }
    return false;
  }
  if (outcome.is_failed()) {
    send({.status = http::status_of(outcome.error()),
          .body = std::string(http::text_of(outcome.error())) + "\n"},
         {.keep_alive = false});
    close_after_answers();
    return true;
  }
  const http::Request& request = outcome.value();
  send(server_.answer(request), {.keep_alive = request.keep_alive,
                                 .is_http10 = request.is_http10,
                                 .is_head = request.method == "HEAD"});
  const bool keep_alive = request.keep_alive;
  input_.erase(0, request.size_bytes);
  sent_continue_ = false;
  push_deadline();
  if (!keep_alive) {
    close_after_answers();
  }
  return true;
}

void AdminServer::Connection::send(const http::Response& response,
                                   const http::ResponseFraming& framing) {
  std::string bytes;
  http::compose_response(bytes, response, framing);
  stream_->write(bytes);
}

void AdminServer::Connection::close_after_answers() {
  KVF_DCHECK(phase_ != Phase::Closing);
  phase_ = Phase::Closing;
  input_ = std::string();
  push_deadline();
  stream_->close_after_output();
}

void AdminServer::Connection::push_deadline() {
  server_.loop_.timers().arm(deadline_, server_.loop_.now() + server_.options_.idle_timeout);
}

}  // namespace kvferry::admin
