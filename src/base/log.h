// Log: structured lines for people and machines, written without ever blocking a worker.
//
// write() puts one line into a bounded queue; flush() (control thread, about every 50 ms and at
// exit) writes the queue out. A full queue loses lines and counts them. Not for the request path:
// log once per second and kind (LogThrottle). Secrets never go into a line.
//
// Text:      2026-01-02T03:04:05.678Z notice pool: backend refused the connection pool=alpha
// Json:      {"time":"2026-01-02T03:04:05.678Z","level":"notice","room":"pool","message":...,
//             "pool":"alpha"}
// Hostile bytes: control characters and bytes that are no UTF-8 come out escaped, so a line is
// always one line and shows what was sent without acting on a terminal.
// Threads:   write() and is_on() from any, the rest from control.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace kvferry::base {

enum class LogLevel : std::uint8_t { Error, Warning, Notice, Info, Debug };
/// Bytes of composed lines that wait for flush(); a line that does not fit is lost and counted.
inline constexpr std::size_t kLogQueueBytesMax = std::size_t{1} << 20;
/// A message or a field value longer than this is cut and ends with "...".
inline constexpr std::size_t kLogValueBytesMax = 1024;

/// "error", "warning", "notice", "info" or "debug".
std::string_view log_level_name(LogLevel level) noexcept;
/// Nothing when `name` is none of the above (exact, lower case).
std::optional<LogLevel> parse_log_level(std::string_view name) noexcept;

enum class LogFormat : std::uint8_t { Text, Json };

/// One `key=value` of a line.
struct LogField {
  LogField(std::string_view field_key, std::string_view field_value) noexcept
      : key(field_key), value(field_value) {}

  std::string_view key;
  std::string_view value;
};

struct LogLine {
  WallTime time;
  LogLevel level;
  std::string_view room;
  std::string_view message;
  std::span<const LogField> fields;
};

struct LogOptions {
  std::string file;  // Empty: standard error.
  LogLevel level = LogLevel::Info;
  LogFormat format = LogFormat::Text;
};

/// Appends one line, line end included. Log does this for its callers; pure, for tests.
void compose_log_line(std::string& out, LogFormat format, const LogLine& line);

class Log {
 public:
  /// The file is opened for appending and made with mode 0640. Errors: System.
  static Result<std::unique_ptr<Log>> open(const LogOptions& options);
  virtual ~Log() = default;

  /// `room` names the part of the program ("pool", "front"); `message` is a sentence without a
  /// trailing period.
  virtual void write(LogLevel level, std::string_view room, std::string_view message,
                     std::initializer_list<LogField> fields = {}) = 0;
  virtual bool is_on(LogLevel level) const noexcept = 0;
  virtual void set_level(LogLevel level) noexcept = 0;
  /// Writes out what is queued, and a line about lost lines when there are new ones.
  virtual void flush() = 0;
  /// Flushes, then opens the file anew (log rotation). On an error the old file stays in use.
  virtual Result<void> reopen() = 0;
  /// Lines dropped since the start: the queue was full, or the file could not be written.
  virtual std::uint64_t lost_lines() const noexcept = 0;
};

/// Lets one line of a kind through per second and counts the others. One per kind and user, on its
/// thread.
class LogThrottle {
 public:
  /// True when a line may be written at `now`; then suppressed() tells how many were held back
  /// since the last one.
  bool allows(SteadyTime now) noexcept {
    if (now < next_) {
      ++held_back_;
      return false;
    }
    next_ = now + Seconds(1);
    suppressed_ = held_back_;
    held_back_ = 0;
    return true;
  }
  std::uint64_t suppressed() const noexcept { return suppressed_; }

 private:
  SteadyTime next_{};
  std::uint64_t held_back_ = 0;
  std::uint64_t suppressed_ = 0;
};

}  // namespace kvferry::base
