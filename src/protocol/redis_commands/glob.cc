#include "protocol/redis_commands/glob.h"

#include <algorithm>
#include <cstddef>

namespace kvferry::redis {
namespace {

char small_letter(char byte) noexcept {
  return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte - 'A' + 'a') : byte;
}

/// One part of a pattern against one byte: a set, a quoted byte, or a byte.
class ByteMatcher {
 public:
  ByteMatcher(std::string_view pattern, LetterCase letter_case) noexcept
      : pattern_(pattern), is_case_ignored_(letter_case == LetterCase::Ignored) {}

  /// Moves `at` behind the part that begins there.
  bool match(std::size_t& at, char byte) const noexcept {
    const char first = pattern_[at++];
    if (first == '?') {
      return true;
    }
    if (first == '[') {
      return match_set(at, byte);
    }
    return is_same(first == '\\' && at < pattern_.size() ? pattern_[at++] : first, byte);
  }

 private:
  bool is_same(char one, char other) const noexcept {
    return one == other || (is_case_ignored_ && small_letter(one) == small_letter(other));
  }
  bool is_between(char low, char high, char byte) const noexcept {
    const auto in_order = [this](char value) {
      return static_cast<unsigned char>(is_case_ignored_ ? small_letter(value) : value);
    };
    const unsigned char first = in_order(low);
    const unsigned char last = in_order(high);
    return in_order(byte) >= std::min(first, last) && in_order(byte) <= std::max(first, last);
  }
  /// A set that is not closed ends with the pattern.
  bool match_set(std::size_t& at, char byte) const noexcept {
    const bool is_negated = at < pattern_.size() && pattern_[at] == '^';
    at += is_negated ? 1U : 0U;
    bool is_in = false;
    for (; at < pattern_.size() && pattern_[at] != ']'; ++at) {
      if (pattern_[at] == '\\' && at + 1 < pattern_.size()) {
        ++at;
        is_in = is_in || pattern_[at] == byte;
      } else if (at + 2 < pattern_.size() && pattern_[at + 1] == '-') {
        is_in = is_in || is_between(pattern_[at], pattern_[at + 2], byte);
        at += 2;
      } else {
        is_in = is_in || is_same(pattern_[at], byte);
      }
    }
    at += at < pattern_.size() ? 1U : 0U;
    return is_in != is_negated;
  }

  std::string_view pattern_;
  bool is_case_ignored_;
};

}  // namespace

bool matches_glob(std::string_view pattern, std::string_view text,
                  LetterCase letter_case) noexcept {
  const ByteMatcher matcher(pattern, letter_case);
  std::size_t at = 0;
  std::size_t text_at = 0;
  // Where to go on when what follows the last '*' does not fit: the '*' takes one byte more.
  std::size_t star_at = std::string_view::npos;
  std::size_t star_text_at = 0;
  while (true) {
    if (at < pattern.size() && pattern[at] == '*') {
      star_at = ++at;
      star_text_at = text_at;
      continue;
    }
    if (text_at == text.size()) {
      return at == pattern.size();
    }
    if (at < pattern.size() && matcher.match(at, text[text_at])) {
      ++text_at;
      continue;
    }
    if (star_at == std::string_view::npos) {
      return false;
    }
    at = star_at;
    text_at = ++star_text_at;
  }
}

}  // namespace kvferry::redis
