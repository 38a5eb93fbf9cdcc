// Meta flags, numbers and base64 keys: what is accepted is inside its range, and composing it again
// gives the same flags.
//
// Byte 0 chooses the command; the rest is what follows its key (and length).
#include "protocol/memcache/meta_flags.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/fuzz_support.h"
#include "protocol/memcache/base64.h"
#include "protocol/memcache/request_parser.h"
#include "protocol/memcache/storage_args.h"

namespace kvferry::memcache {
namespace {

using fuzz::is_inside;
using fuzz::require;

constexpr std::string_view kHeads[] = {"mg k ",  "ms k 0 ", "md k ",    "ma k ", "me k ",  "set k ",
                                       "cas k ", "incr k ", "touch k ", "gat ",  "decr k "};

std::string compose_flag(const MetaFlags& flags, char letter) {
  switch (letter) {
    case 'T':
      return "T" + std::to_string(flags.exptime);
    case 'N':
      return "N" + std::to_string(flags.vivify_exptime);
    case 'R':
      return "R" + std::to_string(flags.recache_exptime);
    case 'F':
      return "F" + std::to_string(flags.client_flags);
    case 'C':
      return "C" + std::to_string(flags.compare_cas);
    case 'E':
      return "E" + std::to_string(flags.new_cas);
    case 'J':
      return "J" + std::to_string(flags.initial);
    case 'D':
      return "D" + std::to_string(flags.delta);
    case 'M':
      return flags.mode == 0 ? "M" : std::string("M") + flags.mode;
    case 'O':
      return std::string(flags.opaque);
    default:
      return std::string(1, letter);
  }
}

/// The request at the front of `line`; value bytes are not waited for.
bool read_request(const std::string& line, Request& request) {
  RequestParser parser(ParserLimits{.stream_bytes_min = 0});
  const auto parsed = parser.parse(line);
  if (parsed.is_done()) {
    request = parsed.value();
  }
  return parsed.is_done();
}

void check_flags(const Request& request, std::string_view head) {
  const MetaFlags flags = parse_meta_flags(request);
  require((flags.error == MetaError::None) == meta_error_line(flags.error).empty());
  if (flags.error != MetaError::None) {
    return;
  }
  require(is_inside(flags.opaque, request.line) && flags.opaque.size() <= kOpaqueTokenBytesMax);
  require(request.quiet == flags.has('q') && request.base64_key == flags.has('b'));
  std::string line(head);
  for (const char letter : flags.letters()) {
    require(flags.has(letter));
    line += compose_flag(flags, letter) + " ";
  }
  line += head.starts_with("ms") ? "\r\n\r\n" : "\r\n";
  Request composed;
  require(read_request(line, composed));
  const MetaFlags again = parse_meta_flags(composed);
  require(again.error == MetaError::None && again.present == flags.present &&
          again.letter_list == flags.letter_list && again.mode == flags.mode);
  require(again.exptime == flags.exptime && again.vivify_exptime == flags.vivify_exptime &&
          again.recache_exptime == flags.recache_exptime &&
          again.client_flags == flags.client_flags && again.compare_cas == flags.compare_cas &&
          again.new_cas == flags.new_cas && again.initial == flags.initial &&
          again.delta == flags.delta && again.opaque == flags.opaque);
}

void check_args(const Request& request) {
  const StorageArgs storage = parse_storage_args(request);
  const ArithArgs arith = parse_arith_args(request);
  const TouchArgs touch = parse_touch_args(request);
  require((storage.error == ArgsError::None) == args_error_line(storage.error).empty());
  require((arith.error == ArgsError::None) == args_error_line(arith.error).empty());
  require((touch.error == ArgsError::None) == args_error_line(touch.error).empty());
}

void check_base64(std::string_view text) {
  std::array<char, kDecodedKeyBytesMax> space{};
  const auto plain = decode_base64_key(text, space);
  if (!plain) {
    return;
  }
  std::array<char, encoded_base64_bytes(kDecodedKeyBytesMax)> encoded_space{};
  const std::string_view encoded = encode_base64_key(*plain, encoded_space);
  require(encoded.size() == text.size());
  std::array<char, kDecodedKeyBytesMax> again_space{};
  const auto again = decode_base64_key(encoded, again_space);
  require(again && *again == *plain);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) {
    return 0;
  }
  const std::string_view head = kHeads[data[0] % std::size(kHeads)];
  const std::string text(data + 1, data + size);
  check_base64(text);
  const std::string line = std::string(head) + text + "\r\n\r\n";
  Request request;
  if (!read_request(line, request)) {
    return 0;
  }
  if (is_meta(request.command)) {
    check_flags(request, head);
  } else {
    check_args(request);
  }
  return 0;
}

}  // namespace kvferry::memcache
