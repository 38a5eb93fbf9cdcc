#include "protocol/memcache_binary/meta_request.h"

#include <gtest/gtest.h>

#include "protocol/memcache/base64.h"
#include "protocol/memcache/request_parser.h"
#include "tests/support/binary_packets.h"

namespace kvferry::memcache_binary {
namespace {

using test::big_endian;
using test::PacketText;

/// The text that a packet becomes; checks that the text parser sees the same in it.
std::string text_of(const PacketText& packet, KeyLimit limit = KeyLimit::Wire,
                    const memcache::ParserLimits& limits = {}) {
  const std::string bytes = test::request_packet(packet);
  const auto parsed = parse_request(bytes, limits);
  EXPECT_TRUE(parsed.is_done());
  std::string text = "left over";
  memcache::Request made;
  if (!compose_text_request(parsed.value(), limit, text, made)) {
    return "too long";
  }
  memcache::RequestParser parser(limits);
  const auto again = parser.parse(text);
  if (limit == KeyLimit::Wire) {
    EXPECT_TRUE(again.is_done()) << text;
    EXPECT_EQ(again.value().command, made.command);
    EXPECT_EQ(again.value().line, made.line);
    EXPECT_EQ(again.value().key, made.key);
    EXPECT_EQ(again.value().keys, made.keys);
    EXPECT_EQ(again.value().key_count, made.key_count);
    EXPECT_EQ(again.value().value, made.value);
    EXPECT_EQ(again.value().value_bytes, made.value_bytes);
    EXPECT_EQ(again.value().has_complete_value, made.has_complete_value);
    EXPECT_EQ(again.value().size_bytes, made.size_bytes);
    EXPECT_EQ(again.value().base64_key, made.base64_key);
    EXPECT_FALSE(made.quiet || made.noreply);
  }
  return text;
}

std::string storage_extras(std::uint32_t flags, std::uint32_t exptime) {
  return big_endian(flags, 4) + big_endian(exptime, 4);
}
std::string arith_extras(std::uint64_t delta, std::uint64_t initial, std::uint32_t exptime) {
  return big_endian(delta, 8) + big_endian(initial, 8) + big_endian(exptime, 4);
}

TEST(BinaryMetaRequest, Reads) {
  const std::string ten = big_endian(10, 4);
  EXPECT_EQ(text_of({.opcode = 0x00, .key = "k"}), "mg k v f c\r\n");
  EXPECT_EQ(text_of({.opcode = 0x0d, .key = "k"}), "mg k v f c\r\n");
  EXPECT_EQ(text_of({.opcode = 0x1d, .extras = ten, .key = "k"}), "mg k T10 v f c\r\n");
  EXPECT_EQ(text_of({.opcode = 0x24, .extras = ten, .key = "k"}), "mg k T10 v f c\r\n");
  EXPECT_EQ(text_of({.opcode = 0x1c, .extras = ten, .key = "k"}), "mg k T10 f c\r\n");
  // A CAS means nothing to a read.
  EXPECT_EQ(text_of({.opcode = 0x00, .key = "k", .cas = 5}), "mg k v f c\r\n");
}

TEST(BinaryMetaRequest, Stores) {
  const std::string zero = storage_extras(0, 0);
  const std::string both = storage_extras(7, 60);
  EXPECT_EQ(text_of({.opcode = 0x01, .extras = zero, .key = "k", .value = "v"}),
            "ms k 1 c\r\nv\r\n");
  EXPECT_EQ(text_of({.opcode = 0x01, .extras = both, .key = "k"}), "ms k 0 T60 F7 c\r\n\r\n");
  EXPECT_EQ(text_of({.opcode = 0x12, .extras = zero, .key = "k", .value = "v"}),
            "ms k 1 ME c\r\nv\r\n");
  EXPECT_EQ(text_of({.opcode = 0x03, .extras = zero, .key = "k", .value = "v"}),
            "ms k 1 MR c\r\nv\r\n");
  for (const int opcode : {0x01, 0x02, 0x03}) {
    EXPECT_EQ(text_of({.opcode = opcode, .extras = zero, .key = "k", .value = "v", .cas = 9}),
              "ms k 1 C9 c\r\nv\r\n");
  }
  EXPECT_EQ(text_of({.opcode = 0x0e, .key = "k", .value = "v"}), "ms k 1 MA c\r\nv\r\n");
  EXPECT_EQ(text_of({.opcode = 0x1a, .key = "k", .value = "v", .cas = 9}),
            "ms k 1 MP C9 c\r\nv\r\n");
}

TEST(BinaryMetaRequest, DeletesAndCounts) {
  const std::string creating = arith_extras(5, 10, 60);
  const std::string only = arith_extras(~std::uint64_t{0}, 10, kNoCreation);
  EXPECT_EQ(text_of({.opcode = 0x04, .key = "k"}), "md k\r\n");
  EXPECT_EQ(text_of({.opcode = 0x14, .key = "k", .cas = 3}), "md k C3\r\n");
  EXPECT_EQ(text_of({.opcode = 0x05, .extras = creating, .key = "k"}),
            "ma k MI D5 N60 J10 v c\r\n");
  EXPECT_EQ(text_of({.opcode = 0x16, .extras = only, .key = "k", .cas = 2}),
            "ma k MD D18446744073709551615 C2 v c\r\n");
}

TEST(BinaryMetaRequest, Flushes) {
  EXPECT_EQ(text_of({.opcode = 0x08}), "flush_all\r\n");
  const std::string ten = big_endian(10, 4);
  EXPECT_EQ(text_of({.opcode = 0x18, .extras = ten}), "flush_all 10\r\n");
  const std::string late = big_endian(0xffffffff, 4);
  EXPECT_EQ(text_of({.opcode = 0x08, .extras = late}), "flush_all 2147483647\r\n");
}

TEST(BinaryMetaRequest, ExptimesOver31BitsAreNever) {
  for (const auto& [exptime, text] :
       {std::pair<std::uint32_t, std::string_view>{0x7fffffff, "mg k T2147483647 f c\r\n"},
        {0x80000000, "mg k T0 f c\r\n"},
        {0xffffffff, "mg k T0 f c\r\n"}}) {
    const std::string extras = big_endian(exptime, 4);
    EXPECT_EQ(text_of({.opcode = 0x1c, .extras = extras, .key = "k"}), text);
  }
}

TEST(BinaryMetaRequest, KeysThatNoLineCanHoldAreEncoded) {
  EXPECT_EQ(text_of({.opcode = 0x00, .key = "a b"}), "mg YSBi b v f c\r\n");
  EXPECT_EQ(text_of({.opcode = 0x0e, .key = "a\n", .value = "v"}), "ms YQo= 1 b MA c\r\nv\r\n");
  EXPECT_EQ(text_of({.opcode = 0x04, .key = std::string_view("\0", 1)}), "md AA== b\r\n");
  EXPECT_EQ(text_of({.opcode = 0x04, .key = "\r"}), "md DQ== b\r\n");
  // What a text client can say is the same key for both.
  EXPECT_EQ(text_of({.opcode = 0x04, .key = "\t\x01\x7f\xff"}), "md \t\x01\x7f\xff\r\n");
}

TEST(BinaryMetaRequest, EncodedKeysAreAsLongAsTheirTakerWantsThem) {
  for (const std::size_t size : {186, 187, 250}) {
    const std::string key(size, ' ');
    std::array<char, 400> space{};
    const std::string line =
        "md " + std::string(memcache::encode_base64_key(key, space)) + " b\r\n";
    EXPECT_EQ(text_of({.opcode = 0x04, .key = key}, KeyLimit::Wire),
              size <= 186 ? line : "too long");
    EXPECT_EQ(text_of({.opcode = 0x04, .key = key}, KeyLimit::Decoded), line);
  }
}

TEST(BinaryMetaRequest, AStreamedValueIsNotThere) {
  const std::string zero = storage_extras(0, 0);
  EXPECT_EQ(text_of({.opcode = 0x01, .extras = zero, .key = "k", .value = "123456789"},
                    KeyLimit::Wire, {.stream_bytes_min = 8}),
            "ms k 9 c\r\n");
}

}  // namespace
}  // namespace kvferry::memcache_binary
