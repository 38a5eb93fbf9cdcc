#include "protocol/memcache/storage_args.h"

#include "protocol/memcache/number.h"
#include "protocol/memcache/token_walker.h"

namespace kvferry::memcache {
namespace {

constexpr std::size_t kTouchExptimeIndex = 2;
constexpr std::size_t kGatExptimeIndex = 1;
constexpr std::size_t kDeltaIndex = 2;

}  // namespace

std::string_view args_error_line(ArgsError error) noexcept {
  switch (error) {
    case ArgsError::BadLine:
      return "CLIENT_ERROR bad command line format\r\n";
    case ArgsError::BadExptime:
      return "CLIENT_ERROR invalid exptime argument\r\n";
    case ArgsError::BadDelta:
      return "CLIENT_ERROR invalid numeric delta argument\r\n";
    case ArgsError::None:
      break;
  }
  return {};
}

StorageArgs parse_storage_args(const Request& request) noexcept {
  StorageArgs args;
  TokenWalker words(request.line_text());
  words.next();  // The command.
  words.next();  // The key.
  bool is_good = read_number(words.next(), args.client_flags);
  is_good = read_number(words.next(), args.exptime) && is_good;
  words.next();  // The length, which the parser has read.
  if (request.command == Command::Cas) {
    is_good = read_number(words.next(), args.cas_unique) && is_good;
  }
  args.error = is_good ? ArgsError::None : ArgsError::BadLine;
  return args;
}

bool has_surplus_words(const Request& request) noexcept {
  constexpr std::size_t kWordsOfSet = 5;  // Command, key, flags, exptime, length.
  const std::size_t words =
      kWordsOfSet + (request.command == Command::Cas ? 1 : 0) + (request.noreply ? 1 : 0);
  return !token_at(request.line_text(), words).empty();
}

ArithArgs parse_arith_args(const Request& request) noexcept {
  ArithArgs args;
  if (!read_number(token_at(request.line_text(), kDeltaIndex), args.delta)) {
    args.error = ArgsError::BadDelta;
  }
  return args;
}

TouchArgs parse_touch_args(const Request& request) noexcept {
  TouchArgs args;
  const std::size_t index =
      request.command == Command::Touch ? kTouchExptimeIndex : kGatExptimeIndex;
  if (!read_number(token_at(request.line_text(), index), args.exptime)) {
    args.error = ArgsError::BadExptime;
  }
  return args;
}

}  // namespace kvferry::memcache
