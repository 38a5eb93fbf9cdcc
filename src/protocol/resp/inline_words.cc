#include "protocol/resp/inline_words.h"

#include <algorithm>

namespace kvferry::resp {

namespace {

bool is_blank(char byte) {
  return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

/// What ends a word outside of quotes: not all that is skipped between words does.
bool ends_word(char byte) {
  return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

/// 16 for what is no hexadecimal digit.
unsigned hex_value(char byte) {
  if (byte >= '0' && byte <= '9') {
    return static_cast<unsigned>(byte - '0');
  }
  const char lower = static_cast<char>(byte | 0x20);
  return lower >= 'a' && lower <= 'f' ? static_cast<unsigned>(lower - 'a') + 10 : 16;
}

char escaped(char letter) {
  switch (letter) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'b':
      return '\b';
    case 'a':
      return '\a';
    default:
      return letter;
  }
}

/// Reads one line from its begin to its end.
class Reader {
 public:
  Reader(std::string_view line, std::string& bytes) : rest_(line), bytes_(bytes) {}

  void skip_blanks() {
    while (!is_at_end() && is_blank(rest_.front())) {
      rest_.remove_prefix(1);
    }
  }
  bool is_at_end() const { return rest_.empty(); }

  bool read_word() {
    while (!is_at_end() && !ends_word(rest_.front())) {
      const char byte = take();
      if (byte != '"' && byte != '\'') {
        bytes_.push_back(byte);
        continue;
      }
      if (!(byte == '"' ? read_double_quoted() : read_single_quoted())) {
        return false;
      }
      // The quote ends the word; nothing may stick to it.
      return is_at_end() || is_blank(rest_.front());
    }
    return true;
  }

 private:
  char take() {
    const char byte = rest_.front();
    rest_.remove_prefix(1);
    return byte;
  }

  bool read_double_quoted() {
    while (!is_at_end()) {
      const char byte = take();
      if (byte == '"') {
        return true;
      }
      if (byte == '\\' && !is_at_end()) {
        read_escape();
      } else {
        bytes_.push_back(byte);
      }
    }
    return false;
  }

  void read_escape() {
    if (rest_.size() >= 3 && rest_[0] == 'x' && hex_value(rest_[1]) < 16 &&
        hex_value(rest_[2]) < 16) {
      bytes_.push_back(static_cast<char>(hex_value(rest_[1]) * 16 + hex_value(rest_[2])));
      rest_.remove_prefix(3);
      return;
    }
    bytes_.push_back(escaped(take()));
  }

  bool read_single_quoted() {
    while (!is_at_end()) {
      const char byte = take();
      if (byte == '\'') {
        return true;
      }
      const bool is_quote = byte == '\\' && !is_at_end() && rest_.front() == '\'';
      bytes_.push_back(is_quote ? take() : byte);
    }
    return false;
  }

  std::string_view rest_;
  std::string& bytes_;
};

}  // namespace

bool read_inline_words(std::string_view line, std::string& bytes, std::vector<WordPlace>& places) {
  Reader reader(line, bytes);
  for (reader.skip_blanks(); !reader.is_at_end(); reader.skip_blanks()) {
    const std::size_t begin = bytes.size();
    if (!reader.read_word()) {
      return false;
    }
    places.push_back({.begin = begin, .size = bytes.size() - begin});
  }
  return true;
}

}  // namespace kvferry::resp
