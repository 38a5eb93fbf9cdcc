#include "pool/probe.h"

#include <utility>

namespace kvferry::pool {
namespace {

constexpr std::string_view kQuestion = "version\r\n";
constexpr std::string_view kAnswer = "VERSION ";

}  // namespace

Probe::Probe(net::Loop& loop, base::Millis timeout, Verdict verdict)
    : loop_(loop),
      timer_(net::Timer::Callback::to<&Probe::on_timeout>(this)),
      timeout_(timeout),
      verdict_(std::move(verdict)) {}

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
  stream_->write(kQuestion);
}

void Probe::on_data(std::string_view bytes) {
  reply_.append(bytes.substr(0, kAnswer.size()));
  if (reply_.size() >= kAnswer.size()) {
    decide(reply_.starts_with(kAnswer));
  }
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
