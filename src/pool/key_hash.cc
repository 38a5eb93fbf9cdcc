#include "pool/key_hash.h"

// The header-only form: short keys are hashed in line, without a call through a dispatcher.
// NOLINTNEXTLINE(readability-identifier-naming): the name is the library's.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "pool/hash_blockwise.h"
#include "pool/hash_bytewise.h"
#include "pool/hash_crc.h"
#include "pool/hash_md5.h"

namespace kvferry::pool {
namespace {

/// Leading decimal number with an optional sign, as C's atol reads it; 0 when there is none.
/// Overflow wraps, which keeps the placement a function of the text.
std::uint64_t hash_atol(std::string_view key) noexcept {
  std::size_t at = 0;
  while (at < key.size() && (key[at] == ' ' || (key[at] >= '\t' && key[at] <= '\r'))) {
    ++at;
  }
  const bool is_negative = at < key.size() && key[at] == '-';
  if (at < key.size() && (key[at] == '-' || key[at] == '+')) {
    ++at;
  }
  std::uint64_t number = 0;
  for (; at < key.size() && key[at] >= '0' && key[at] <= '9'; ++at) {
    number = number * 10 + static_cast<std::uint64_t>(key[at] - '0');
  }
  return is_negative ? 0 - number : number;
}

std::string_view between_tags(std::string_view key, std::string_view tag,
                              std::string_view when_empty) noexcept {
  const std::size_t open = key.find(tag[0]);
  if (open == std::string_view::npos) {
    return key;
  }
  const std::size_t close = key.find(tag[1], open + 1);
  if (close == std::string_view::npos) {
    return key;
  }
  return close == open + 1 ? when_empty : key.substr(open + 1, close - open - 1);
}

}  // namespace

std::uint64_t hash_xxh3(std::string_view key, std::uint64_t seed) noexcept {
  return XXH3_64bits_withSeed(key.data(), key.size(), seed);
}

std::uint64_t hash_key(HashKind kind, std::string_view key) noexcept {
  switch (kind) {
    case HashKind::OneAtATime:
      return hash_one_at_a_time(key);
    case HashKind::Md5:
      return hash_md5(key);
    case HashKind::Crc16:
      return hash_crc16(key);
    case HashKind::Crc32:
      // Twemproxy keeps 15 bits of the middle, as an old memcached client did.
      return (hash_crc32a(key) >> 16) & 0x7fffU;
    case HashKind::Crc32a:
      return hash_crc32a(key);
    case HashKind::Fnv1_64:
      return hash_fnv1_64(key);
    case HashKind::Fnv1a_64:
      return hash_fnv1a_64(key);
    case HashKind::Fnv1_32:
      return hash_fnv1_32(key);
    case HashKind::Fnv1a_32:
      return hash_fnv1a_32(key);
    case HashKind::Hsieh:
      return hash_hsieh(key);
    case HashKind::Murmur:
      return hash_murmur(key);
    case HashKind::Jenkins:
      return hash_jenkins(key);
    case HashKind::Murmur3:
      return hash_murmur3(key);
    case HashKind::Xxh3:
      return XXH3_64bits(key.data(), key.size());
    case HashKind::Crc16Slot:
      return hash_crc16(key) % kSlotCount;
    case HashKind::Atol:
      return hash_atol(key);
  }
  return 0;
}

std::string_view hashed_part(std::string_view key, std::string_view hash_tag) noexcept {
  return hash_tag.size() < 2 ? key : between_tags(key, hash_tag, key);
}

std::string_view hashed_part(std::string_view key, KeyFilter filter,
                             std::string_view conf) noexcept {
  if (conf.empty()) {
    return key;
  }
  switch (filter) {
    case KeyFilter::HashTag:
      return hashed_part(key, conf);
    case KeyFilter::MemcachedTags:
      return conf.size() < 2 ? key : between_tags(key, conf, key.substr(0, 0));
    case KeyFilter::MemcachedStop:
      return key.substr(0, key.find(conf));
  }
  return key;
}

std::string_view name_of(HashKind kind) noexcept {
  switch (kind) {
    case HashKind::OneAtATime:
      return "one_at_a_time";
    case HashKind::Md5:
      return "md5";
    case HashKind::Crc16:
      return "crc16";
    case HashKind::Crc32:
      return "crc32";
    case HashKind::Crc32a:
      return "crc32a";
    case HashKind::Fnv1_64:
      return "fnv1_64";
    case HashKind::Fnv1a_64:
      return "fnv1a_64";
    case HashKind::Fnv1_32:
      return "fnv1_32";
    case HashKind::Fnv1a_32:
      return "fnv1a_32";
    case HashKind::Hsieh:
      return "hsieh";
    case HashKind::Murmur:
      return "murmur";
    case HashKind::Jenkins:
      return "jenkins";
    case HashKind::Murmur3:
      return "murmur3";
    case HashKind::Xxh3:
      return "xxh3";
    case HashKind::Crc16Slot:
      return "crc16_slot";
    case HashKind::Atol:
      return "atol";
  }
  return "";
}

}  // namespace kvferry::pool
