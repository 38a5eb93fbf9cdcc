// The text of one configuration file, and its lines as they may be shown to people.
//
// Lifetime:  line() gives a copy; nothing points into the text.
// Threads:   plain value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kvferry::config {

class Source {
 public:
  /// `name` is what messages call the file.
  Source(std::string name, std::string text);

  const std::string& name() const noexcept { return name_; }
  std::string_view text() const noexcept { return text_; }
  /// Line `number` (from 1) without its end, secrets replaced by ***; empty beyond the last line.
  std::string line(std::uint32_t number) const;
  /// Line `number` as it stands in the file. Never for output.
  std::string_view raw_line(std::uint32_t number) const;
  /// Number of the line that holds byte `offset`.
  std::uint32_t line_of(std::size_t offset) const;
  /// Hides the lines `first` to `last` (values of secrets that span lines).
  void hide_lines(std::uint32_t first, std::uint32_t last);

 private:
  bool continues_secret(std::uint32_t number) const;

  struct Span {
    std::uint32_t first = 0;
    std::uint32_t last = 0;
  };

  std::string name_;
  std::string text_;
  std::vector<std::size_t> line_starts_;
  std::vector<Span> hidden_;
};

/// True for keys whose value is a secret in any dialect, available yet or not.
bool is_secret_key(std::string_view key) noexcept;

}  // namespace kvferry::config
