#include "config/source.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace kvferry::config {
namespace {

// Keys of every dialect, so that a file of a later version does not print its secrets either.
constexpr std::array<std::string_view, 7> kSecretKeys = {
    "redis_auth", "redis_requirepass", "password", "token", "sentinel_auth", "peer_auth", "users"};

bool is_word(char byte) {
  return std::isalnum(static_cast<unsigned char>(byte)) != 0 || byte == '_';
}

/// Where the value after key `word` begins, or npos. Looks at the text only, because a file with a
/// syntax error has no tree and its lines are shown too.
std::size_t secret_value_start(std::string_view line, std::string_view word) {
  for (std::size_t at = line.find(word); at != std::string_view::npos;
       at = line.find(word, at + 1)) {
    if (at != 0 && is_word(line[at - 1])) {
      continue;
    }
    std::size_t end = at + word.size();
    while (end < line.size() && (line[end] == '"' || line[end] == '\'' || line[end] == ' ')) {
      ++end;
    }
    if (end < line.size() && line[end] == ':') {
      const std::size_t value = line.find_first_not_of(" \t", end + 1);
      return value;
    }
  }
  return std::string_view::npos;
}

/// Where the first secret value of `line` begins, or npos.
std::size_t first_secret(std::string_view line) {
  std::size_t start = std::string_view::npos;
  for (const std::string_view key : kSecretKeys) {
    start = std::min(start, secret_value_start(line, key));
  }
  return start;
}

/// Leading blanks; npos for a line without anything else.
std::size_t indent_of(std::string_view line) {
  return line.find_first_not_of(" \t");
}

}  // namespace

bool is_secret_key(std::string_view key) noexcept {
  return std::find(kSecretKeys.begin(), kSecretKeys.end(), key) != kSecretKeys.end();
}

Source::Source(std::string name, std::string text)
    : name_(std::move(name)), text_(std::move(text)), line_starts_{0} {
  for (std::size_t at = text_.find('\n'); at != std::string::npos; at = text_.find('\n', at + 1)) {
    line_starts_.push_back(at + 1);
  }
}

std::string_view Source::raw_line(std::uint32_t number) const {
  if (number == 0 || number > line_starts_.size()) {
    return {};
  }
  const std::size_t start = line_starts_[number - 1];
  const std::size_t end = number < line_starts_.size() ? line_starts_[number] - 1 : text_.size();
  std::string_view line = std::string_view(text_).substr(start, end - start);
  if (line.ends_with('\r')) {
    line.remove_suffix(1);
  }
  return line;
}

std::string Source::line(std::uint32_t number) const {
  for (const Span& span : hidden_) {
    if (number >= span.first && number <= span.last) {
      return "***";
    }
  }
  if (continues_secret(number)) {
    return "***";
  }
  const std::string_view shown = raw_line(number);
  const std::size_t cut = first_secret(shown);
  if (cut == std::string_view::npos) {
    return std::string(shown);
  }
  return std::string(shown.substr(0, cut)) + "***";
}

/// True when the nearest line above that is indented less begins a secret. Needed for files with
/// syntax errors; for others hide_lines() was told.
bool Source::continues_secret(std::uint32_t number) const {
  const std::size_t indent = indent_of(raw_line(number));
  for (std::uint32_t above = number; indent != std::string_view::npos && above > 1;) {
    const std::string_view line = raw_line(--above);
    if (indent_of(line) < indent) {
      return first_secret(line) != std::string_view::npos;
    }
  }
  return false;
}

std::uint32_t Source::line_of(std::size_t offset) const {
  const auto after = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  return static_cast<std::uint32_t>(after - line_starts_.begin());
}

void Source::hide_lines(std::uint32_t first, std::uint32_t last) {
  hidden_.push_back({first, last});
}

}  // namespace kvferry::config
