#include "protocol/memcache_binary/meta_request.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <string_view>

#include "protocol/memcache/base64.h"

namespace kvferry::memcache_binary {
namespace {

using memcache::Command;

constexpr std::string_view kLineEnd = "\r\n";
constexpr std::size_t kEncodedKeyBytesMax = memcache::encoded_base64_bytes(memcache::kKeyBytesMax);
/// Meta commands read exptimes with a sign, packets have none.
constexpr std::uint32_t kExptimeMax = std::numeric_limits<std::int32_t>::max();

void add_number(std::string& text, std::uint64_t number) {
  std::array<char, std::numeric_limits<std::uint64_t>::digits10 + 1> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  text.append(digits.data(), end);
}

void add_flag(std::string& text, std::string_view flag, std::uint64_t number) {
  text += ' ';
  text += flag;
  add_number(text, number);
}

/// Whether `key` may stand on a line as it is. memcached reads a line up to its first NUL, and
/// takes every other control character for one of the key.
bool is_plain(std::string_view key) {
  for (const char byte : key) {
    if (byte == ' ' || byte == '\r' || byte == '\n' || byte == '\0') {
      return false;
    }
  }
  return true;
}

/// Later than can be said is as good as never; memcached would keep such an item for as long.
std::uint32_t exptime_of(std::string_view extras) {
  const auto exptime = read_big_endian<std::uint32_t>(extras);
  return exptime > kExptimeMax ? 0 : exptime;
}

Command command_of(Opcode plain) {
  switch (plain) {
    case Opcode::Delete:
      return Command::Md;
    case Opcode::Increment:
    case Opcode::Decrement:
      return Command::Ma;
    case Opcode::Get:
    case Opcode::Gat:
    case Opcode::Touch:
      return Command::Mg;
    case Opcode::Flush:
      return Command::FlushAll;
    default:
      return Command::Ms;
  }
}

void add_storage_flags(const Request& packet, std::string& text) {
  if (const std::uint32_t exptime = exptime_of(packet.extras.substr(4)); exptime != 0) {
    add_flag(text, "T", exptime);
  }
  if (const auto flags = read_big_endian<std::uint32_t>(packet.extras); flags != 0) {
    add_flag(text, "F", flags);
  }
  // With a CAS all three are compare-and-swap.
  if (packet.cas == 0 && packet.order.plain != Opcode::Set) {
    text += packet.order.plain == Opcode::Add ? " ME" : " MR";
  }
}

void add_arith_flags(const Request& packet, std::string& text) {
  text += packet.order.plain == Opcode::Increment ? " MI" : " MD";
  add_flag(text, "D", read_big_endian<std::uint64_t>(packet.extras));
  if (read_big_endian<std::uint32_t>(packet.extras.substr(16)) != kNoCreation) {
    add_flag(text, "N", exptime_of(packet.extras.substr(16)));
    add_flag(text, "J", read_big_endian<std::uint64_t>(packet.extras.substr(8)));
  }
}

void add_flags(const Request& packet, std::string& text) {
  std::string_view wanted;
  switch (packet.order.shape) {
    case Shape::Touch:
      add_flag(text, "T", exptime_of(packet.extras));
      wanted = packet.order.plain == Opcode::Touch ? " f c" : " v f c";
      break;
    case Shape::Storage:
      add_storage_flags(packet, text);
      wanted = " c";
      break;
    case Shape::Join:
      text += packet.order.plain == Opcode::Append ? " MA" : " MP";
      wanted = " c";
      break;
    case Shape::Arith:
      add_arith_flags(packet, text);
      wanted = " v c";
      break;
    default:
      wanted = packet.order.plain == Opcode::Get ? " v f c" : "";
      break;
  }
  const bool compares = memcache::Command::Mg != command_of(packet.order.plain);
  if (compares && packet.cas != 0) {
    add_flag(text, "C", packet.cas);
  }
  text += wanted;
}

void compose_flush(const Request& packet, std::string& text, memcache::Request& made) {
  text = "flush_all";
  if (!packet.extras.empty()) {
    const auto delay = read_big_endian<std::uint32_t>(packet.extras);
    add_flag(text, "", std::min(delay, kExptimeMax));
  }
  text += kLineEnd;
  made.line = text;
  made.size_bytes = text.size();
}

}  // namespace

bool compose_text_request(const Request& packet, KeyLimit limit, std::string& text,
                          memcache::Request& made) {
  made = {};
  made.command = command_of(packet.order.plain);
  if (packet.order.shape == Shape::Flush) {
    compose_flush(packet, text, made);
    return true;
  }
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): filled as far as it is used
  std::array<char, kEncodedKeyBytesMax> encoded;
  std::string_view key = packet.key;
  made.base64_key = !is_plain(key);
  if (made.base64_key) {
    key = memcache::encode_base64_key(key, encoded);
    if (limit == KeyLimit::Wire && key.size() > memcache::kKeyBytesMax) {
      return false;
    }
  }
  text.assign(memcache::command_name(made.command));
  text += ' ';
  const std::size_t key_at = text.size();
  text += key;
  const bool has_value = made.command == Command::Ms;
  if (has_value) {
    add_flag(text, "", packet.value_bytes);
  }
  if (made.base64_key) {
    text += " b";
  }
  add_flags(packet, text);
  text += kLineEnd;
  const std::size_t line_bytes = text.size();
  made.has_complete_value = packet.has_complete_value;
  if (has_value && packet.has_complete_value) {
    text += packet.value;
    text += kLineEnd;
  }
  const std::string_view whole = text;
  made.key_count = 1;
  made.line = whole.substr(0, line_bytes);
  made.key = whole.substr(key_at, key.size());
  made.keys = made.key;
  made.size_bytes = whole.size();
  if (has_value) {
    made.value_bytes = packet.value_bytes;
    made.value = whole.substr(line_bytes, packet.value.size());
  }
  return true;
}

}  // namespace kvferry::memcache_binary
