#include "protocol/resp/reply_writer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace kvferry::resp {

namespace {

constexpr std::string_view kLineEnd = "\r\n";
/// The longest: a sign, 17 digits with a point, an exponent with a sign and three digits.
using NumberText = std::array<char, 32>;

template <typename Number>
std::string_view text_of(Number number, NumberText& room) {
  const auto [end, error] = std::to_chars(room.data(), room.data() + room.size(), number);
  return {room.data(), static_cast<std::size_t>(end - room.data())};
}

std::string_view text_of_double(double number, NumberText& room) {
  if (std::isnan(number)) {
    return "nan";
  }
  if (std::isinf(number)) {
    return number > 0 ? "inf" : "-inf";
  }
  return text_of(number, room);
}

}  // namespace

void ReplyWriter::line(char type, std::string_view text) {
  text_.push_back(type);
  text_.append(text).append(kLineEnd);
}

void ReplyWriter::begin(char type, std::uint64_t count) {
  NumberText room{};
  line(type, text_of(count, room));
}

void ReplyWriter::error(std::string_view text) {
  const std::size_t from = text_.size();
  text_.push_back('-');
  text_.append(text);
  std::replace_if(
      text_.begin() + static_cast<std::ptrdiff_t>(from), text_.end(),
      [](char byte) { return byte == '\r' || byte == '\n'; }, ' ');
  text_.append(kLineEnd);
}

void ReplyWriter::integer(std::int64_t number) {
  NumberText room{};
  line(':', text_of(number, room));
}

void ReplyWriter::bulk(std::string_view bytes) {
  begin('$', bytes.size());
  text_.append(bytes).append(kLineEnd);
}

void ReplyWriter::boolean(bool is_true) {
  if (version_ == Version::Two) {
    integer(is_true ? 1 : 0);
  } else {
    line('#', is_true ? "t" : "f");
  }
}

void ReplyWriter::number(double number) {
  NumberText room{};
  const std::string_view text = text_of_double(number, room);
  if (version_ == Version::Two) {
    bulk(text);
  } else {
    line(',', text);
  }
}

void ReplyWriter::verbatim(std::string_view format, std::string_view bytes) {
  if (version_ == Version::Two) {
    bulk(bytes);
    return;
  }
  begin('=', format.size() + 1 + bytes.size());
  text_.append(format).append(":").append(bytes).append(kLineEnd);
}

void ReplyWriter::map(std::uint64_t count) {
  if (version_ == Version::Two) {
    begin('*', 2 * count);
  } else {
    begin('%', count);
  }
}

}  // namespace kvferry::resp
