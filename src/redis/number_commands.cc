// Commands that count.
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "protocol/resp/integer.h"
#include "redis/store_commands.h"

namespace kvferry::redis {

using store::EditOptions;
using store::ItemCopy;

namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
/// Longer texts are no numbers to redis-server.
constexpr std::size_t kFloatBytesMax = 256;
/// Room for any of them without an exponent.
constexpr std::size_t kFloatTextBytes = 5120;

/// Numbers that clients of memcached have counted down are padded with blanks.
std::string_view without_padding(std::string_view text) {
  const std::size_t end = text.find_last_not_of(' ');
  return end == std::string_view::npos ? text : text.substr(0, end + 1);
}

bool read_float(std::string_view text, long double& number) {
  if (text.empty() || text.size() >= kFloatBytesMax || text.front() == ' ' ||
      (text.front() >= '\t' && text.front() <= '\r') || text.find('\0') != std::string_view::npos) {
    return false;
  }
  std::array<char, kFloatBytesMax> copy{};
  text.copy(copy.data(), text.size());
  char* end = nullptr;
  number = std::strtold(copy.data(), &end);
  const bool is_too_far = std::isinf(number) && text.find_first_of("nN") == std::string_view::npos;
  return end == copy.data() + text.size() && !std::isnan(number) && !is_too_far;
}

/// As people write it: no exponent, no zeros at the end.
std::string_view write_float(long double number, std::array<char, kFloatTextBytes>& room) {
  const int size = std::snprintf(room.data(), room.size(), "%.17Lf", number);
  std::string_view text(room.data(), static_cast<std::size_t>(size));
  if (text.find('.') != std::string_view::npos) {
    text = text.substr(0, text.find_last_not_of('0') + 1);
    if (text.ends_with('.')) {
      text.remove_suffix(1);
    }
  }
  return text == "-0" ? "0" : text;
}

}  // namespace

void StoreCommands::delta(Request& request, std::int64_t delta) {
  std::int64_t number = 0;
  std::string_view error;
  const bool is_done = edit(request, request.args[1], [&](ItemCopy& copy, EditOptions& /*stored*/) {
    load_value(copy);
    number = 0;
    error = {};
    if (copy.is_found && !resp::read_integer(without_padding(value_), number)) {
      error = kNoIntegerError;
    } else if (delta > 0 ? number > kMax - delta : number < kMin - delta) {
      error = "ERR increment or decrement would overflow";
    }
    if (!error.empty()) {
      return Edit::Keep;
    }
    number += delta;
    std::array<char, 24> text{};
    const auto [end, code] = std::to_chars(text.data(), text.data() + text.size(), number);
    value_.assign(text.data(), end);
    return Edit::Store;
  });
  if (!error.empty()) {
    request.reply.error(error);
  } else if (is_done) {
    request.reply.integer(number);
  }
}

void StoreCommands::increment(Request& request) {
  delta(request, 1);
}

void StoreCommands::decrement(Request& request) {
  delta(request, -1);
}

void StoreCommands::increment_by(Request& request) {
  std::int64_t number = 0;
  if (!resp::read_integer(request.args[2], number)) {
    request.reply.error(kNoIntegerError);
    return;
  }
  delta(request, number);
}

void StoreCommands::decrement_by(Request& request) {
  std::int64_t number = 0;
  if (!resp::read_integer(request.args[2], number)) {
    request.reply.error(kNoIntegerError);
    return;
  }
  if (number == kMin) {
    request.reply.error("ERR decrement would overflow");
    return;
  }
  delta(request, -number);
}

void StoreCommands::increment_by_float(Request& request) {
  long double delta = 0;
  const bool is_delta_good = read_float(request.args[2], delta);
  std::string_view error;
  const bool is_done = edit(request, request.args[1], [&](ItemCopy& copy, EditOptions& /*stored*/) {
    load_value(copy);
    long double number = 0;
    error = {};
    if ((copy.is_found && !read_float(without_padding(value_), number)) || !is_delta_good) {
      error = "ERR value is not a valid float";
      return Edit::Keep;
    }
    number += delta;
    if (std::isnan(number) || std::isinf(number)) {
      error = "ERR increment would produce NaN or Infinity";
      return Edit::Keep;
    }
    std::array<char, kFloatTextBytes> text{};
    value_.assign(write_float(number, text));
    return Edit::Store;
  });
  if (!error.empty()) {
    request.reply.error(error);
  } else if (is_done) {
    request.reply.bulk(value_);
  }
}

}  // namespace kvferry::redis
