#include "pool/probe.h"

#include <algorithm>
#include <utility>

#include "protocol/resp/reply_scanner.h"

namespace kvferry::pool {
namespace {

/// A greeting is answered with less; a server that sends more is no Redis server.
constexpr std::size_t kReplyBytesMax = std::size_t{64} * 1024;

std::string first_line(const std::string& reply) {
  return reply.substr(0, std::min(reply.find_first_of("\r\n"), kRefusalBytesMax));
}

}  // namespace

ProbeQuestion probe_question(const PoolOptions& options) {
  if (options.protocol != Protocol::Redis) {
    return {};
  }
  ProbeQuestion question;
  question.greeting = redis_greeting(options.redis, resp::Version::Two, options.redis.db_base);
  question.bytes = question.greeting.bytes + "*1\r\n$4\r\nPING\r\n";
  question.answer = "+PONG\r\n";
  return question;
}

Probe::Probe(net::Loop& loop, base::Millis timeout, Verdict verdict, ProbeQuestion question)
    : loop_(loop),
      timer_(net::Timer::Callback::to<&Probe::on_timeout>(this)),
      timeout_(timeout),
      verdict_(std::move(verdict)),
      question_(std::move(question)) {}

void Probe::start(const net::Address& address, const net::TlsContextPtr& tls,
                  const std::string& host) {
  loop_.timers().arm(timer_, loop_.now() + timeout_);
  auto opened = loop_.connect(address, net::ConnectOptions{}, *this);
  if (opened && (tls == nullptr || (*opened)->start_tls(tls, host))) {
    stream_ = std::move(opened).value();
  }
  // Without a socket the timer says no.
}

void Probe::on_connected() {
  stream_->write(question_.bytes);
}

void Probe::on_data(std::string_view bytes) {
  reply_.append(bytes.substr(0, kReplyBytesMax));
  if (!take_greeting_replies()) {
    return;  // More is to come, or this object is gone.
  }
  const std::string_view answer = question_.answer;
  const std::string_view begin = std::string_view(reply_).substr(0, answer.size());
  if (begin == answer) {
    decide(true);
  } else if (!answer.starts_with(begin)) {
    refusal_ = first_line(reply_);
    decide(false);
  }
}

/// Takes the replies to the greeting away from the front of reply_, and judges them. True when all
/// were good.
bool Probe::take_greeting_replies() {
  while (step_ < question_.greeting.step_count && !reply_.empty()) {
    resp::ReplyScanner scanner;
    const resp::ReplyScanner::Scan scan = scanner.scan(reply_);
    if (scan.state == resp::ReplyScanner::State::More && reply_.size() < kReplyBytesMax) {
      return false;
    }
    const bool is_reply = scan.state == resp::ReplyScanner::State::End;
    if (!is_reply || !greeting_refusal(question_.greeting.steps[step_], reply_).empty()) {
      refusal_ = first_line(reply_);
      decide(false);
      return false;
    }
    reply_.erase(0, scan.taken_bytes);
    ++step_;
  }
  return step_ == question_.greeting.step_count;
}

void Probe::decide(bool is_well) {
  timer_.cancel();
  stream_.reset();
  if (verdict_) {
    // The verdict may destroy this probe.
    std::exchange(verdict_, nullptr)(is_well);
  }
}

}  // namespace kvferry::pool
