// What is wrong with a configuration, where, and what to do about it.
//
// The texts are those of docs/configuration.md: `file:line:column: error: pool 'p': ...`, the line
// with a mark, and at most one hint. Secrets never appear: the lines shown have them masked.
// Threads: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kvferry::config {

/// Errors collected before the reader gives up.
inline constexpr std::size_t kErrorsMax = 20;

enum class Severity : std::uint8_t { Error, Warning, Notice };

/// "error", "warning" or "notice".
std::string_view to_string(Severity severity) noexcept;

/// Lines and columns count from 1; line 0 means the file as a whole.
struct Position {
  std::string file;
  std::uint32_t line = 0;
  std::uint32_t column = 0;

  /// "a.yml:3".
  std::string to_string() const;

  friend bool operator==(const Position&, const Position&) = default;
};

struct Problem {
  Severity severity = Severity::Error;
  std::string code;  // "E-range", "W10", "N02".
  Position where;
  std::uint32_t width = 1;  // Characters to mark.
  std::string pool;         // Empty outside pools.
  std::string key;
  std::string message;  // Without the pool.
  std::string hint;
  std::string source_line;  // Empty when there is no line to show.
};

/// `text` as it may be shown: control bytes as blanks, bytes that are not UTF-8 as question marks,
/// cut after `bytes_max` bytes without breaking a character.
std::string printable(std::string_view text, std::size_t bytes_max);

/// The one-line form: "a.yml:7:12: error: pool 'beta': ...".
std::string headline(const Problem& problem);

/// All lines for people, each with its line end.
std::string to_text(const Problem& problem);

/// A JSON array of objects with file, line, column, severity, code, pool, key, message, hint.
std::string to_json(const std::vector<Problem>& problems);

/// Collects problems and knows when enough is enough.
class ProblemList {
 public:
  /// Keeps `problem`; errors beyond kErrorsMax are dropped.
  void add(Problem problem);

  bool has_errors() const noexcept { return error_count_ != 0; }
  std::size_t error_count() const noexcept { return error_count_; }
  bool is_full() const noexcept { return error_count_ >= kErrorsMax; }

  /// Hands everything over, ordered by file (in order of first appearance), line and column.
  std::vector<Problem> take();

 private:
  std::vector<Problem> problems_;
  std::size_t error_count_ = 0;
};

}  // namespace kvferry::config
