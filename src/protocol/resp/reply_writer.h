// ReplyWriter: composes replies to Redis clients, in the version of the protocol that each of them
// has asked for.
//
// Source:    redis.io, "Redis serialization protocol specification"; the shapes that redis-server
// 7.0 gives in both versions.
// Lifetime:  the text outlives the writer, which only appends to it.
// Threads:   one user at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kvferry::resp {

enum class Version : std::uint8_t { Two = 2, Three = 3 };

class ReplyWriter {
 public:
  ReplyWriter(Version version, std::string& text) noexcept : version_(version), text_(text) {}

  /// `text` has no line end in it.
  void simple(std::string_view text) { line('+', text); }
  /// `text` begins with the word that names the kind, such as ERR; line ends in it become blanks.
  void error(std::string_view text);
  void integer(std::int64_t number);
  void bulk(std::string_view bytes);
  /// Where a value would stand.
  void null() { text_.append(version_ == Version::Two ? "$-1\r\n" : "_\r\n"); }
  /// Where an array would stand.
  void null_array() { text_.append(version_ == Version::Two ? "*-1\r\n" : "_\r\n"); }
  void boolean(bool is_true);
  /// In version 2 a bulk string. The shortest text that reads as the same number.
  void number(double number);
  /// A text for people: `format` has three letters, such as txt.
  void verbatim(std::string_view format, std::string_view bytes);

  /// Of aggregates only the begin: so many elements, or pairs, follow.
  void array(std::uint64_t count) { begin('*', count); }
  /// In version 2 an array of twice as many elements.
  void map(std::uint64_t count);
  /// In version 2 an array.
  void set(std::uint64_t count) { begin(version_ == Version::Two ? '*' : '~', count); }
  /// In version 2 an array.
  void push(std::uint64_t count) { begin(version_ == Version::Two ? '*' : '>', count); }

  Version version() const noexcept { return version_; }

 private:
  void line(char type, std::string_view text);
  void begin(char type, std::uint64_t count);

  Version version_;
  std::string& text_;
};

}  // namespace kvferry::resp
