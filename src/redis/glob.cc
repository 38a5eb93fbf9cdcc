#include "redis/glob.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace kvferry::redis {

namespace {

struct Class {
  bool is_in;
  std::size_t end;  // Behind the class in the pattern.
};

/// The class whose '[' stands before `at`. One that is not closed ends with the pattern.
Class match_class(std::string_view pattern, std::size_t at, char byte) {
  const bool is_inverted = at < pattern.size() && pattern[at] == '^';
  at += is_inverted ? 1 : 0;
  bool is_found = false;
  while (at < pattern.size() && pattern[at] != ']') {
    if (pattern[at] == '\\' && at + 1 < pattern.size()) {
      is_found = is_found || pattern[at + 1] == byte;
      at += 2;
    } else if (at + 2 < pattern.size() && pattern[at + 1] == '-') {
      const auto low = static_cast<unsigned char>(pattern[at]);
      const auto high = static_cast<unsigned char>(pattern[at + 2]);
      const auto wanted = static_cast<unsigned char>(byte);
      is_found = is_found || (wanted >= std::min(low, high) && wanted <= std::max(low, high));
      at += 3;
    } else {
      is_found = is_found || pattern[at] == byte;
      ++at;
    }
  }
  return {.is_in = is_found != is_inverted, .end = std::min(at + 1, pattern.size())};
}

/// Whether `byte` fits the element at `at`, which is no '*'; moves `at` behind it.
bool match_one(std::string_view pattern, std::size_t& at, char byte) {
  switch (pattern[at]) {
    case '?':
      ++at;
      return true;
    case '[': {
      const Class found = match_class(pattern, at + 1, byte);
      at = found.end;
      return found.is_in;
    }
    case '\\':
      at += at + 1 < pattern.size() ? 1 : 0;
      break;
    default:
      break;
  }
  return pattern[at++] == byte;
}

}  // namespace

bool matches_glob(std::string_view pattern, std::string_view text) noexcept {
  constexpr std::size_t kNone = std::string_view::npos;
  std::size_t at = 0;
  std::size_t text_at = 0;
  // Where to go on when what follows the last star does not fit: that star takes one byte more.
  std::size_t behind_star = kNone;
  std::size_t star_text_at = 0;
  while (text_at < text.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      behind_star = ++at;
      star_text_at = text_at;
      continue;
    }
    if (at < pattern.size() && match_one(pattern, at, text[text_at])) {
      ++text_at;
      continue;
    }
    if (behind_star == kNone) {
      return false;
    }
    at = behind_star;
    text_at = ++star_text_at;
  }
  while (at < pattern.size() && pattern[at] == '*') {
    ++at;
  }
  return at == pattern.size();
}

}  // namespace kvferry::redis
