// RequestWriter: composes requests, as arrays of bulk strings: whole, or word by word into whatever
// takes bytes.
//
// Source:    redis.io, "Redis serialization protocol specification".
// Threads:   pure functions.
#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace kvferry::resp {

/// A line such as "*3\r\n" or "$11\r\n", in memory of its own.
class LengthLine {
 public:
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): bytes_ is read up to size_ only
  LengthLine(char type, std::uint64_t number) noexcept {
    bytes_[0] = type;
    char* const end = std::to_chars(bytes_.data() + 1, bytes_.data() + kDigitsEnd, number).ptr;
    end[0] = '\r';
    end[1] = '\n';
    size_ = static_cast<std::size_t>(end + 2 - bytes_.data());
  }
  std::string_view text() const noexcept { return {bytes_.data(), size_}; }

 private:
  static constexpr std::size_t kDigitsEnd = 21;  // The type and 20 digits.
  std::array<char, kDigitsEnd + 2> bytes_;
  std::size_t size_;
};

/// Passes `word` as a bulk string to `write(std::string_view)`: short ones in one piece.
template <typename Write>
void write_bulk(std::string_view word, Write write) {
  constexpr std::size_t kShortBytesMax = 96;
  const LengthLine line('$', word.size());
  if (word.size() > kShortBytesMax) {
    write(line.text());
    write(word);
    write(std::string_view("\r\n"));
    return;
  }
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): written before it is read
  std::array<char, kShortBytesMax + 32> bytes;
  const std::string_view head = line.text();
  std::memcpy(bytes.data(), head.data(), head.size());
  std::size_t size = head.size();
  if (!word.empty()) {
    std::memcpy(bytes.data() + size, word.data(), word.size());
    size += word.size();
  }
  bytes[size++] = '\r';
  bytes[size++] = '\n';
  write(std::string_view(bytes.data(), size));
}

/// Appends the request that has these arguments.
inline void append_request(std::span<const std::string_view> args, std::string& bytes) {
  bytes += LengthLine('*', args.size()).text();
  for (const std::string_view argument : args) {
    write_bulk(argument, [&](std::string_view piece) { bytes += piece; });
  }
}

}  // namespace kvferry::resp
