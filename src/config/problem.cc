#include "config/problem.h"

#include <algorithm>
#include <cstddef>
#include <fmt/format.h>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/json_text.h"

namespace kvferry::config {
namespace {

/// Longest part of a source line that is shown; a generated file may have one line of a megabyte.
constexpr std::size_t kShownBytesMax = 200;

/// Number of characters of UTF-8 text: every byte but the continuation ones.
std::size_t character_count(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xc0U) != 0x80U;
  }));
}

std::string quoted(std::string_view text) {
  std::string out;
  base::append_json_string(out, text);
  return out;
}

std::string marked_line(const Problem& problem) {
  const std::string line = printable(problem.source_line, kShownBytesMax);
  const std::size_t line_length = character_count(line);
  const std::size_t before = problem.where.column == 0 ? 0 : problem.where.column - 1;
  std::string out = fmt::format("{:5} | {}\n", problem.where.line, line);
  if (before <= line_length) {
    const std::size_t room = std::max<std::size_t>(1, line_length - before);
    const std::size_t width = std::clamp<std::size_t>(problem.width, 1, room);
    out += fmt::format("      | {}{}\n", std::string(before, ' '), std::string(width, '^'));
  }
  return out;
}

}  // namespace

std::string printable(std::string_view text, std::size_t bytes_max) {
  std::string out;
  while (!text.empty()) {
    const std::size_t size = base::utf8_character_bytes(text);
    const std::size_t step = std::max<std::size_t>(size, 1);
    if (out.size() + step > bytes_max) {
      break;
    }
    const bool is_control = static_cast<unsigned char>(text.front()) < 0x20 || text.front() == 0x7f;
    if (size == 0 || is_control) {
      // Control bytes would act on the terminal of whoever reads the message.
      out.push_back(is_control ? ' ' : '?');
    } else {
      out.append(text, 0, size);
    }
    text.remove_prefix(step);
  }
  return out;
}

std::string_view to_string(Severity severity) noexcept {
  switch (severity) {
    case Severity::Error:
      return "error";
    case Severity::Warning:
      return "warning";
    case Severity::Notice:
      break;
  }
  return "notice";
}

std::string Position::to_string() const {
  return line == 0 ? file : fmt::format("{}:{}", file, line);
}

std::string headline(const Problem& problem) {
  std::string place = problem.where.file;
  if (problem.where.line != 0) {
    place += fmt::format(":{}:{}", problem.where.line, problem.where.column);
  }
  std::string pool;
  // Some messages are about the pool itself and begin with its name.
  if (!problem.pool.empty() && !problem.message.starts_with("pool '")) {
    pool = fmt::format("pool '{}': ", problem.pool);
  }
  return fmt::format("{}: {}: {}{}", printable(place, kShownBytesMax), to_string(problem.severity),
                     pool, problem.message);
}

std::string to_text(const Problem& problem) {
  std::string out = headline(problem) + "\n";
  if (problem.where.line != 0 && !problem.source_line.empty()) {
    out += marked_line(problem);
  }
  if (!problem.hint.empty()) {
    out += "  hint: " + problem.hint + "\n";
  }
  return out;
}

std::string to_json(const std::vector<Problem>& problems) {
  std::string out = "[";
  for (const Problem& problem : problems) {
    out += out.size() == 1 ? "\n " : ",\n ";
    out += fmt::format(R"({{"file": {}, "line": {}, "column": {}, )", quoted(problem.where.file),
                       problem.where.line, problem.where.column);
    out += fmt::format(R"("severity": "{}", "code": {}, )", to_string(problem.severity),
                       quoted(problem.code));
    out += fmt::format(R"("pool": {}, "key": {}, )", quoted(problem.pool), quoted(problem.key));
    out += fmt::format(R"("message": {}, "hint": {}}})", quoted(problem.message),
                       quoted(problem.hint));
  }
  out += problems.empty() ? "]\n" : "\n]\n";
  return out;
}

void ProblemList::add(Problem problem) {
  if (problem.severity == Severity::Error) {
    if (is_full()) {
      return;
    }
    ++error_count_;
  }
  problems_.push_back(std::move(problem));
}

std::vector<Problem> ProblemList::take() {
  std::map<std::string, std::size_t> file_rank;
  for (const Problem& problem : problems_) {
    file_rank.try_emplace(problem.where.file, file_rank.size());
  }
  // Places in the list break ties; std::stable_sort would need what clang calls deprecated.
  std::vector<std::size_t> order(problems_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto place = [&](std::size_t index) {
    const Position& where = problems_[index].where;
    return std::tuple(file_rank.at(where.file), where.line, where.column, index);
  };
  std::sort(order.begin(), order.end(),
            [&place](std::size_t left, std::size_t right) { return place(left) < place(right); });
  std::vector<Problem> sorted;
  sorted.reserve(order.size());
  for (const std::size_t index : order) {
    sorted.push_back(std::move(problems_[index]));
  }
  problems_.clear();
  error_count_ = 0;
  return sorted;
}

}  // namespace kvferry::config
