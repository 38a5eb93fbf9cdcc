// Words of a line, one after the other. One or more spaces separate words; tabs do not.
//
// Lifetime:  views point into the text that was given.
// Threads:   a value; one user at a time.
#pragma once

#include <cstddef>
#include <string_view>

namespace kvferry::memcache {

class TokenWalker {
 public:
  /// `text` has no line end.
  explicit TokenWalker(std::string_view text) noexcept : rest_(text) {}

  /// The next word; empty when there is none left.
  std::string_view next() noexcept {
    skip_blanks();
    const std::size_t size = rest_.find(' ');
    const std::string_view token = rest_.substr(0, size);
    rest_.remove_prefix(token.size());
    return token;
  }

  /// The same for a word that is likely to be short, such as a number: a loop over a few bytes
  /// costs less than the call of a search.
  std::string_view next_short() noexcept {
    skip_blanks();
    std::size_t size = 0;
    while (size < rest_.size() && rest_[size] != ' ') {
      ++size;
    }
    const std::string_view token = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return token;
  }

  /// What follows the last word that was returned, blanks included.
  std::string_view rest() const noexcept { return rest_; }

 private:
  void skip_blanks() noexcept {
    while (!rest_.empty() && rest_.front() == ' ') {
      rest_.remove_prefix(1);
    }
  }

  std::string_view rest_;
};

/// Walks Request::keys.
using KeyWalker = TokenWalker;

/// Word number `index` of `text` (the command is number 0); empty when there are fewer.
inline std::string_view token_at(std::string_view text, std::size_t index) noexcept {
  TokenWalker walker(text);
  std::string_view token = walker.next();
  while (index > 0 && !token.empty()) {
    token = walker.next();
    --index;
  }
  return token;
}

}  // namespace kvferry::memcache
