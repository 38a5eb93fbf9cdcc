#include "base/json_text.h"

#include <cstdint>

namespace kvferry::base {

namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

constexpr std::uint8_t byte_at(std::string_view bytes, std::size_t index) noexcept {
  return static_cast<std::uint8_t>(bytes[index]);
}

bool is_continuation(std::uint8_t byte) noexcept {
  return (byte & 0xC0U) == 0x80U;
}

/// Allowed values of the second byte depend on the first: this is what keeps overlong forms,
/// surrogates and too large values out (Unicode standard, table 3-7).
bool is_second_byte(std::uint8_t first, std::uint8_t second) noexcept {
  switch (first) {
    case 0xE0:
      return second >= 0xA0 && second <= 0xBF;
    case 0xED:
      return second >= 0x80 && second <= 0x9F;
    case 0xF0:
      return second >= 0x90 && second <= 0xBF;
    case 0xF4:
      return second >= 0x80 && second <= 0x8F;
    default:
      return is_continuation(second);
  }
}

std::size_t announced_bytes(std::uint8_t first) noexcept {
  if (first < 0x80) {
    return 1;
  }
  if (first >= 0xC2 && first <= 0xDF) {
    return 2;
  }
  if (first >= 0xE0 && first <= 0xEF) {
    return 3;
  }
  return first >= 0xF0 && first <= 0xF4 ? 4 : 0;
}

void append_control(std::string& out, char control) {
  switch (control) {
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      out += "\\u00";
      out += kHexDigits[static_cast<std::uint8_t>(control) >> 4];
      out += kHexDigits[static_cast<std::uint8_t>(control) & 15];
  }
}

}  // namespace

std::size_t utf8_character_bytes(std::string_view bytes) noexcept {
  if (bytes.empty()) {
    return 0;
  }
  const std::size_t size = announced_bytes(byte_at(bytes, 0));
  if (size > bytes.size()) {
    return 0;
  }
  if (size >= 2 && !is_second_byte(byte_at(bytes, 0), byte_at(bytes, 1))) {
    return 0;
  }
  for (std::size_t i = 2; i < size; ++i) {
    if (!is_continuation(byte_at(bytes, i))) {
      return 0;
    }
  }
  return size;
}

void append_hex_escape(std::string& out, char byte) {
  out += "\\x";
  out += kHexDigits[static_cast<std::uint8_t>(byte) >> 4];
  out += kHexDigits[static_cast<std::uint8_t>(byte) & 15];
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const char first = text.front();
    const std::size_t size = utf8_character_bytes(text);
    if (size == 0) {
      out += '\\';  // JSON's own escape of the backslash that follows.
      append_hex_escape(out, first);
    } else if (first == '"' || first == '\\') {
      out += '\\';
      out += first;
    } else if (static_cast<std::uint8_t>(first) < 0x20 || first == 0x7F) {
      append_control(out, first);
    } else {
      out += text.substr(0, size);
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  out += '"';
}

}  // namespace kvferry::base
