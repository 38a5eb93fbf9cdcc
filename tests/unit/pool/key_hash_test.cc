#include "pool/key_hash.h"

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "pool/hash_crc.h"
#include "pool/hash_md5.h"

namespace kvferry::pool {
namespace {

struct Row {
  std::string_view key;
  std::array<std::uint64_t, 12> hashes;  // In the order of HashKind.
};

// Decimal values that twemproxy's own functions give.
constexpr Row kTwemproxyRows[] = {
    {"foo",
     {596015325, 3675831724, 205303702, 3187, 2356372769, 1805727027, 4275688823, 1083137555,
      2851307223, 1993659431, 3303027599, 2583187353}},
    {"user:1000",
     {3043211087, 781738503, 3781445233, 8052, 2675185635, 3550362913, 2927313545, 2796551329,
      1350311305, 3723237737, 2384768711, 76303748}},
    {"123456789",
     {3328923845, 2498230565, 2257596867, 19444, 3421780262, 737744598, 600231420, 605325334,
      3146166556, 3841726064, 3077965456, 427260662}},
    {"caf\xc3\xa9",
     {3650908318, 3833532679, 4129724007, 6317, 2561491637, 2315714289, 3472276361, 3598905713,
      1970454601, 3728705621, 3658586143, 3412207021}},
    {std::string_view("\xff\x00\x80z", 4),
     {2663601442, 2185706493, 56528870, 29714, 1947392388, 2729813402, 4109816044, 3397193050,
      435356748, 979695416, 511249283, 1725532058}},
};

TEST(KeyHash, AgreesWithTwemproxyOnBytesOfBothSigns) {
  for (const Row& row : kTwemproxyRows) {
    for (std::size_t kind = 0; kind < row.hashes.size(); ++kind) {
      const auto hash = static_cast<HashKind>(kind);
      EXPECT_EQ(hash_key(hash, row.key), row.hashes[kind]) << name_of(hash) << " of " << row.key;
    }
  }
}

TEST(KeyHash, GivesTheFirstWordOfMurmur3WithDynomitesSeed) {
  const std::pair<std::string_view, std::uint64_t> rows[] = {
      {"a", 0x07dde0a4},
      {"city:rome", 0x97524f2a},
      {"user:1000", 0x9a7bf731},
      {"foo", 0x83abc7ef},
      {"hello world", 0xe004cda1},
      {"\xc3\xa9t\xc3\xa9", 0xc9571527},
      {"0123456789abcdef0123456789abcdef", 0x6085d6e4},
  };
  for (const auto& [key, hash] : rows) {
    EXPECT_EQ(hash_key(HashKind::Murmur3, key), hash) << key;
  }
}

TEST(KeyHash, GivesAll64BitsOfXxh3WithAndWithoutSeed) {
  const std::uint64_t seed = hash_key(HashKind::Xxh3, "hello");
  EXPECT_EQ(seed, 0x9555e8555c62dcfdU);
  const struct {
    std::string_view key;
    std::uint64_t plain;
    std::uint64_t seeded;
  } rows[] = {
      {"foo", 0xab6e5f64077e7d8aU, 0xfb06174f45adfda8U},
      {"user:1000", 0xfb6841b2068c0c9fU, 0xa9db4c63e58db92bU},
      {"averyveryverylongkeyaveryveryverylongkey", 0x9ad68cbcf3cd088cU, 0x9debb416659aea5fU},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(hash_key(HashKind::Xxh3, row.key), row.plain);
    EXPECT_EQ(hash_xxh3(row.key, 0), row.plain);
    EXPECT_EQ(hash_xxh3(row.key, seed), row.seeded);
  }
}

TEST(KeyHash, KeepsTheSlotOfARedisClusterIn14Bits) {
  EXPECT_EQ(hash_key(HashKind::Crc16Slot, "123456789"), 0x31c3U);
  EXPECT_EQ(hash_key(HashKind::Crc16Slot, "foo"), 12182U);
  EXPECT_EQ(hash_key(HashKind::Crc16Slot, ""), 0U);
}

TEST(KeyHash, ReadsALeadingDecimalNumber) {
  const auto atol_of = [](std::string_view key) {
    return static_cast<std::int64_t>(hash_key(HashKind::Atol, key));
  };
  EXPECT_EQ(atol_of("42"), 42);
  EXPECT_EQ(atol_of("42:user"), 42);
  EXPECT_EQ(atol_of("-7x"), -7);
  EXPECT_EQ(atol_of("+7"), 7);
  EXPECT_EQ(atol_of(" \t\r9"), 9);
  EXPECT_EQ(atol_of("user:42"), 0);
  EXPECT_EQ(atol_of("-"), 0);
  EXPECT_EQ(atol_of("--5"), 0);
  EXPECT_EQ(atol_of(""), 0);
  EXPECT_EQ(atol_of("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
}

/// `size` bytes of all values; another start for every size.
std::string bytes_of(std::size_t size) {
  std::string bytes;
  for (std::size_t at = 0; at < size; ++at) {
    bytes += static_cast<char>((at * 7 + size) % 256);
  }
  return bytes;
}

TEST(KeyHash, GivesTheDigestOfMd5AroundTheEdgesOfItsBlocks) {
  const struct {
    std::size_t size;
    Md5Words words;
  } rows[] = {
      {0, {0xd98c1dd4U, 0x04b2008fU, 0x980980e9U, 0x7e42f8ecU}},
      {1, {0x0840a555U, 0x89a51badU, 0x260d21aaU, 0x41dfc129U}},
      {3, {0x81e4aec9U, 0x86ef2305U, 0x8d1b1258U, 0x416b2c49U}},
      {55, {0x329728f1U, 0x75183525U, 0x2ab6220eU, 0x48171a57U}},
      {56, {0x9f3b9e17U, 0x3ea272a2U, 0xbd328b2aU, 0x145401e1U}},
      {57, {0x9aa5f0d5U, 0x16d8d6a9U, 0xfb54374dU, 0x0978f691U}},
      {63, {0x455978ddU, 0x7eb8d6d1U, 0x6d270dcaU, 0xfd5687bbU}},
      {64, {0x4c39abe3U, 0xa07debe4U, 0x2e7da220U, 0x3c144324U}},
      {65, {0xf9b0a628U, 0xa0aed918U, 0x169a973eU, 0xf6d0d857U}},
      {119, {0x532097d4U, 0x316a380aU, 0xdcc0ea91U, 0xbdd10d84U}},
      {120, {0x0400448aU, 0x6a2869b5U, 0x2922c742U, 0xa6c5e15cU}},
      {127, {0x5834d036U, 0xe645a7e8U, 0x22f0fc1aU, 0x126e8257U}},
      {128, {0xca29cc52U, 0x8093fdecU, 0x801a26a2U, 0x87678ec5U}},
      {129, {0xc1eaa50fU, 0x878f495bU, 0x9c809494U, 0xc79f9374U}},
      {1000, {0x8d96b2c3U, 0x4538e034U, 0x82c8145dU, 0x93e15671U}},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(md5_words(bytes_of(row.size)), row.words) << row.size;
  }
}

TEST(KeyHash, GivesTheSameChecksumsByEightBytesAsBitByBit) {
  for (std::size_t size = 0; size <= 100; ++size) {
    const std::string key = bytes_of(size);
    std::uint32_t crc32 = 0xffffffffU;
    std::uint32_t crc16 = 0;
    for (const char byte : key) {
      crc32 ^= static_cast<unsigned char>(byte);
      for (int bit = 0; bit < 8; ++bit) {
        crc32 = (crc32 >> 1) ^ ((crc32 & 1U) != 0 ? 0xedb88320U : 0U);
      }
      std::uint32_t effect = (((crc16 >> 8) ^ static_cast<unsigned char>(byte)) & 0xffU) << 8;
      for (int bit = 0; bit < 8; ++bit) {
        effect = ((effect << 1) ^ ((effect & 0x8000U) != 0 ? 0x1021U : 0U)) & 0xffffU;
      }
      crc16 = (crc16 << 8) ^ effect;
    }
    EXPECT_EQ(hash_crc32a(key), ~crc32) << size;
    EXPECT_EQ(hash_crc16(key), crc16) << size;
  }
}

TEST(KeyHash, ReadsNoByteBehindTheKey) {
  // Views into the middle of a buffer: the bytes around must not matter. The address sanitizer sees
  // the keys at the end of an allocation of their own.
  for (std::size_t size = 0; size <= 40; ++size) {
    const std::string key = bytes_of(size);
    const std::string framed = "<" + key + ">";
    const std::vector<char> exact(key.begin(), key.end());
    for (int kind = 0; kind <= static_cast<int>(HashKind::Atol); ++kind) {
      const auto hash = static_cast<HashKind>(kind);
      const std::uint64_t expected = hash_key(hash, key);
      EXPECT_EQ(hash_key(hash, std::string_view(framed).substr(1, size)), expected);
      EXPECT_EQ(hash_key(hash, std::string_view(exact.data(), size)), expected);
    }
  }
}

TEST(KeyHash, HashesWhatLiesInTheTag) {
  const struct {
    std::string_view key;
    std::string_view tag;
    std::string_view part;
  } rows[] = {
      {"user:{42}:name", "{}", "42"},
      {"{42}", "{}", "42"},
      {"user:42", "{}", "user:42"},
      {"{}x", "{}", "{}x"},
      {"{}{42}", "{}", "{}{42}"},
      {"{42", "{}", "{42"},
      {"42}", "{}", "42}"},
      {"}{42}", "{}", "42"},
      {"{{42}}", "{}", "{42"},
      {"a$42$b", "$$", "42"},
      {"a$$42$", "$$", "a$$42$"},
      {"{42}", "", "{42}"},
      {"", "{}", ""},
      {"{", "{}", "{"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(hashed_part(row.key, row.tag), row.part) << row.key;
    EXPECT_EQ(hashed_part(row.key, KeyFilter::HashTag, row.tag), row.part) << row.key;
  }
}

TEST(KeyHash, FiltersAsMemcachedsProxyDoes) {
  const auto tags = [](std::string_view key) {
    return hashed_part(key, KeyFilter::MemcachedTags, "{}");
  };
  EXPECT_EQ(tags("x{bar}y"), "bar");
  EXPECT_EQ(tags("a}{bar}"), "bar");
  EXPECT_EQ(tags("{}x"), "");
  EXPECT_EQ(tags("x{bar"), "x{bar");
  EXPECT_EQ(tags("x{"), "x{");

  const auto stop = [](std::string_view key) {
    return hashed_part(key, KeyFilter::MemcachedStop, "|#|");
  };
  EXPECT_EQ(stop("foo|#|zzz"), "foo");
  EXPECT_EQ(stop("foo|#|a|#|b"), "foo");
  EXPECT_EQ(stop("foo|#"), "foo|#");
  EXPECT_EQ(stop("|#|foo"), "");
}

TEST(KeyHash, NamesEveryKindDifferently) {
  std::vector<std::string_view> names;
  for (int kind = 0; kind <= static_cast<int>(HashKind::Atol); ++kind) {
    for (const std::string_view other : names) {
      EXPECT_NE(name_of(static_cast<HashKind>(kind)), other);
    }
    names.push_back(name_of(static_cast<HashKind>(kind)));
    EXPECT_FALSE(names.back().empty());
  }
}

}  // namespace
}  // namespace kvferry::pool
