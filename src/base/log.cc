#include "base/log.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <mutex>
#include <unistd.h>
#include <utility>

#include "base/json_text.h"

namespace kvferry::base {

namespace {

constexpr std::array<std::string_view, 5> kLevelNames = {"error", "warning", "notice", "info",
                                                         "debug"};
constexpr unsigned kLogFileMode = 0640;

void append_padded(std::string& out, unsigned value, std::size_t width) {
  std::array<char, 10> digits{};
  for (std::size_t i = width; i > 0; --i) {
    digits[i - 1] = static_cast<char>('0' + value % 10);
    value /= 10;
  }
  out.append(digits.data(), width);
}

/// RFC 3339 in UTC with milliseconds.
void append_time(std::string& out, WallTime time) {
  const auto millis = std::chrono::floor<Millis>(time);
  const auto day = std::chrono::floor<std::chrono::days>(millis);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(millis - day);
  append_padded(out, static_cast<unsigned>(static_cast<int>(date.year())), 4);
  out += '-';
  append_padded(out, static_cast<unsigned>(date.month()), 2);
  out += '-';
  append_padded(out, static_cast<unsigned>(date.day()), 2);
  out += 'T';
  append_padded(out, static_cast<unsigned>(clock.hours().count()), 2);
  out += ':';
  append_padded(out, static_cast<unsigned>(clock.minutes().count()), 2);
  out += ':';
  append_padded(out, static_cast<unsigned>(clock.seconds().count()), 2);
  out += '.';
  append_padded(out, static_cast<unsigned>(clock.subseconds().count()), 3);
  out += 'Z';
}

/// Control characters: ASCII ones, and U+0080 to U+009F, which some terminals obey as well.
bool is_control(std::string_view character) noexcept {
  const auto first = static_cast<std::uint8_t>(character[0]);
  return first < 0x20 || first == 0x7F ||
         (first == 0xC2 && static_cast<std::uint8_t>(character[1]) < 0xA0);
}

/// Appends `text` so that it stays on its line. `quoted`: inside double quotes, so quote and
/// backslash are escaped too.
void append_escaped(std::string& out, std::string_view text, bool quoted) {
  while (!text.empty()) {
    const std::size_t size = utf8_character_bytes(text);
    const std::string_view character = text.substr(0, size == 0 ? 1 : size);
    if (character == "\n") {
      out += "\\n";
    } else if (character == "\r") {
      out += "\\r";
    } else if (character == "\t") {
      out += "\\t";
    } else if (size == 0 || is_control(character)) {
      for (const char byte : character) {
        append_hex_escape(out, byte);
      }
    } else {
      if (quoted && (character == "\"" || character == "\\")) {
        out += '\\';
      }
      out += character;
    }
    text.remove_prefix(character.size());
  }
}

bool needs_quotes(std::string_view value) noexcept {
  for (const char byte : value) {
    const auto code = static_cast<std::uint8_t>(byte);
    if (code <= 0x20 || code >= 0x7F || byte == '"' || byte == '\\' || byte == '=') {
      return true;
    }
  }
  return value.empty();
}

/// The text itself, or its start and three dots made in `space`.
std::string_view cut_text(std::string_view text, std::string& space) {
  if (text.size() <= kLogValueBytesMax) {
    return text;
  }
  space.assign(text.substr(0, kLogValueBytesMax));
  space += "...";
  return space;
}

void compose_text(std::string& out, const LogLine& line) {
  std::string space;
  append_time(out, line.time);
  out += ' ';
  out += log_level_name(line.level);
  out += ' ';
  out += line.room;
  out += ": ";
  append_escaped(out, cut_text(line.message, space), false);
  for (const LogField& field : line.fields) {
    const std::string_view value = cut_text(field.value, space);
    out += ' ';
    out += field.key;
    out += '=';
    if (needs_quotes(value)) {
      out += '"';
      append_escaped(out, value, true);
      out += '"';
    } else {
      out += value;
    }
  }
  out += '\n';
}

void compose_json(std::string& out, const LogLine& line) {
  std::string space;
  out += R"({"time":")";
  append_time(out, line.time);
  out += R"(","level":")";
  out += log_level_name(line.level);
  out += R"(","room":)";
  append_json_string(out, line.room);
  out += R"(,"message":)";
  append_json_string(out, cut_text(line.message, space));
  for (const LogField& field : line.fields) {
    out += ',';
    append_json_string(out, field.key);
    out += ':';
    append_json_string(out, cut_text(field.value, space));
  }
  out += "}\n";
}

/// Opens `file` for appending; standard error when it is empty.
Result<int> open_sink(const std::string& file) {
  if (file.empty()) {
    return STDERR_FILENO;
  }
  const int fd =
      ::open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, kLogFileMode);
  if (fd < 0) {
    return Error::from_errno("log file " + file, errno);
  }
  return fd;
}

/// False when the sink refuses; what came out before that stays.
bool write_all(int fd, std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      return false;
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

class QueuedLog final : public Log {
 public:
  QueuedLog(LogOptions options, int fd)
      : options_(std::move(options)), level_(options_.level), fd_(fd) {}
  QueuedLog(const QueuedLog&) = delete;
  QueuedLog& operator=(const QueuedLog&) = delete;
  ~QueuedLog() override {
    write_out();
    close_sink();
  }

  void write(LogLevel level, std::string_view room, std::string_view message,
             std::initializer_list<LogField> fields) override {
    if (!is_on(level)) {
      return;
    }
    // The one clock read outside net and app: a line's time is when it was written, and no caller
    // could know better.
    std::string line;
    compose_log_line(line, options_.format,
                     {.time = std::chrono::system_clock::now(),
                      .level = level,
                      .room = room,
                      .message = message,
                      .fields = {fields.begin(), fields.size()}});
    const std::scoped_lock guard(mutex_);
    if (queue_.size() + line.size() > kLogQueueBytesMax) {
      lost_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    queue_ += line;
    ++queued_lines_;
  }

  bool is_on(LogLevel level) const noexcept override {
    return level <= level_.load(std::memory_order_relaxed);
  }
  void set_level(LogLevel level) noexcept override {
    level_.store(level, std::memory_order_relaxed);
  }
  void flush() override { write_out(); }

  Result<void> reopen() override {
    write_out();
    Result<int> opened = open_sink(options_.file);
    if (!opened) {
      return std::move(opened).error();
    }
    close_sink();
    fd_ = *opened;
    return {};
  }

  std::uint64_t lost_lines() const noexcept override {
    return lost_.load(std::memory_order_relaxed);
  }

 private:
  /// Takes the queue under the lock and writes it outside, so that a slow disk never makes a worker
  /// wait.
  void write_out() {
    std::uint64_t lines = 0;
    writing_.clear();
    {
      const std::scoped_lock guard(mutex_);
      queue_.swap(writing_);
      lines = std::exchange(queued_lines_, 0);
    }
    const std::uint64_t lost = lost_lines();
    if (lost != lost_told_) {
      const std::string count = std::to_string(lost - lost_told_);
      const LogField field("count", count);
      compose_log_line(writing_, options_.format,
                       {.time = std::chrono::system_clock::now(),
                        .level = LogLevel::Warning,
                        .room = "log",
                        .message = "lines were lost",
                        .fields = {&field, 1}});
    }
    if (write_all(fd_, writing_)) {
      lost_told_ = lost;
    } else {
      lost_.fetch_add(lines, std::memory_order_relaxed);
    }
  }
  void close_sink() const noexcept {
    if (fd_ != STDERR_FILENO) {
      ::close(fd_);
    }
  }

  const LogOptions options_;
  std::atomic<LogLevel> level_;
  std::atomic<std::uint64_t> lost_{0};
  std::mutex mutex_;
  std::string queue_;               // Guarded by mutex_.
  std::uint64_t queued_lines_ = 0;  // Guarded by mutex_.
  std::string writing_;             // Control thread only, as all below.
  std::uint64_t lost_told_ = 0;
  int fd_;
};

}  // namespace

std::string_view log_level_name(LogLevel level) noexcept {
  return kLevelNames[static_cast<std::size_t>(level)];
}

std::optional<LogLevel> parse_log_level(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kLevelNames.size(); ++i) {
    if (kLevelNames[i] == name) {
      return static_cast<LogLevel>(i);
    }
  }
  return std::nullopt;
}

void compose_log_line(std::string& out, LogFormat format, const LogLine& line) {
  if (format == LogFormat::Text) {
    compose_text(out, line);
  } else {
    compose_json(out, line);
  }
}

Result<std::unique_ptr<Log>> Log::open(const LogOptions& options) {
  Result<int> fd = open_sink(options.file);
  if (!fd) {
    return std::move(fd).error();
  }
  return std::unique_ptr<Log>(std::make_unique<QueuedLog>(options, *fd));
}

}  // namespace kvferry::base
