#include "front/credentials.h"

#include <utility>

namespace kvferry::front {
namespace {

/// Looks at every byte, so that the time says nothing about where the first difference is.
bool is_same(std::string_view left, std::string_view right) noexcept {
  if (left.size() != right.size()) {
    return false;
  }
  unsigned difference = 0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    difference |= static_cast<unsigned char>(left[i]) ^ static_cast<unsigned char>(right[i]);
  }
  return difference == 0;
}

}  // namespace

Credentials Credentials::of(std::string_view user, std::string_view password) {
  Credentials made;
  made.values_.push_back(std::string(user).append(" ").append(password));
  return made;
}

std::optional<Credentials> Credentials::parse(std::string_view text) {
  Credentials made;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() == text.size() ? line.size() : line.size() + 1);
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    if (line.empty()) {
      continue;
    }
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || colon == 0) {
      return std::nullopt;
    }
    std::string value(line);
    value[colon] = ' ';
    made.values_.push_back(std::move(value));
  }
  if (made.values_.empty()) {
    return std::nullopt;
  }
  return made;
}

bool Credentials::allow(std::string_view value) const noexcept {
  bool is_allowed = false;
  for (const std::string& known : values_) {
    is_allowed = is_same(known, value) || is_allowed;
  }
  return is_allowed;
}

}  // namespace kvferry::front
