#include "protocol/resp/request_writer.h"

#include <array>
#include <charconv>

namespace kvferry::resp {

namespace {

void append_line(char type, std::uint64_t number, std::string& bytes) {
  std::array<char, 20> digits{};
  const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  bytes += type;
  bytes.append(digits.data(), static_cast<std::size_t>(written.ptr - digits.data()));
  bytes.append("\r\n");
}

}  // namespace

void append_request_count(std::uint64_t count, std::string& bytes) {
  append_line('*', count, bytes);
}

void append_argument(std::string_view argument, std::string& bytes) {
  append_line('$', argument.size(), bytes);
  bytes.append(argument).append("\r\n");
}

void append_request(std::span<const std::string_view> args, std::string& bytes) {
  append_request_count(args.size(), bytes);
  for (const std::string_view argument : args) {
    append_argument(argument, bytes);
  }
}

}  // namespace kvferry::resp
