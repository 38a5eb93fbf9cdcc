// Log: structured lines for people and machines, written without ever blocking a worker.
//
// write() puts one line into a bounded queue; flush() (control thread, about every 50 ms and at
// exit) writes the queue out. A full queue loses lines and counts them. Not for the request path:
// log once per second and kind (LogThrottle). Threads: write() from any, flush() and reopen() from
// control.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace kvferry::base {

enum class LogLevel : std::uint8_t { Error, Warning, Notice, Info, Debug };
enum class LogFormat : std::uint8_t { Text, Json };

/// One `key=value` of a line.
struct LogField {
  std::string_view key;
  std::string_view value;
};

struct LogOptions {
  std::string file;  // Empty: standard error.
  LogLevel level = LogLevel::Info;
  LogFormat format = LogFormat::Text;
};

class Log {
 public:
  static Result<std::unique_ptr<Log>> open(const LogOptions& options);
  virtual ~Log() = default;

  /// `room` names the part of the program ("pool", "front"); `message` is a sentence without a
  /// trailing period.
  virtual void write(LogLevel level, std::string_view room, std::string_view message,
                     std::initializer_list<LogField> fields = {}) = 0;
  virtual bool is_on(LogLevel level) const noexcept = 0;
  virtual void set_level(LogLevel level) noexcept = 0;
  virtual void flush() = 0;
  /// Opens the file anew (log rotation).
  virtual Result<void> reopen() = 0;
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
