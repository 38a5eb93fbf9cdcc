#include "app/tls_watch.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace kvferry::app {
namespace {

using net::TlsFailure;
using net::TlsFailureKind;
using net::TlsRole;

class LogRecorder final : public base::Log {
 public:
  std::vector<std::string> lines;

  void write(base::LogLevel level, std::string_view room, std::string_view message,
             std::initializer_list<base::LogField> fields) override {
    std::string line = std::string(base::log_level_name(level)) + " " + std::string(room) + ": " +
                       std::string(message);
    for (const base::LogField& field : fields) {
      line += " " + std::string(field.key) + "=" + std::string(field.value);
    }
    lines.push_back(std::move(line));
  }
  bool is_on(base::LogLevel /*level*/) const noexcept override { return true; }
  void set_level(base::LogLevel /*level*/) noexcept override {}
  void flush() override {}
  base::Result<void> reopen() override { return {}; }
  std::uint64_t lost_lines() const noexcept override { return 0; }
};

TEST(TlsWatch, CountsByRole) {
  LogRecorder log;
  TlsWatch watch(log);
  watch.on_tls_handshake(TlsRole::Server, false);
  watch.on_tls_handshake(TlsRole::Server, true);
  watch.on_tls_handshake(TlsRole::Client, false);
  watch.on_tls_failure(TlsRole::Client, "pool a", {.kind = TlsFailureKind::Verify});
  const TlsWatch::Figures clients = watch.figures(TlsRole::Server);
  EXPECT_EQ(clients.handshakes, 2U);
  EXPECT_EQ(clients.resumed, 1U);
  EXPECT_EQ(clients.failures[static_cast<std::size_t>(TlsFailureKind::Verify)], 0U);
  const TlsWatch::Figures backends = watch.figures(TlsRole::Client);
  EXPECT_EQ(backends.handshakes, 1U);
  EXPECT_EQ(backends.failures[static_cast<std::size_t>(TlsFailureKind::Verify)], 1U);
}

TEST(TlsWatch, LogsOneLineAMinuteForEachKindAndPlace) {
  LogRecorder log;
  TlsWatch watch(log);
  const TlsFailure verify{
      .kind = TlsFailureKind::Verify, .reason = "certificate has expired", .peer = "10.0.0.1:5"};
  for (int i = 0; i < 100; ++i) {
    watch.on_tls_failure(TlsRole::Client, "pool a", verify);
  }
  ASSERT_EQ(log.lines.size(), 1U);
  EXPECT_EQ(log.lines[0],
            "warning net: TLS with a backend failed at=pool a peer=10.0.0.1:5 kind=verify "
            "reason=certificate has expired suppressed=0");
  watch.on_tls_failure(TlsRole::Client, "pool b", verify);
  watch.on_tls_failure(TlsRole::Server, "listener b", verify);
  watch.on_tls_failure(TlsRole::Client, "pool a", {.kind = TlsFailureKind::Alert});
  EXPECT_EQ(log.lines.size(), 4U);
  EXPECT_EQ(
      watch.figures(TlsRole::Client).failures[static_cast<std::size_t>(TlsFailureKind::Verify)],
      101U);
}

}  // namespace
}  // namespace kvferry::app
