#include "protocol/memcache_binary/request.h"

#include <gtest/gtest.h>

#include "tests/support/binary_packets.h"

namespace kvferry::memcache_binary {
namespace {

using test::PacketText;
using test::request_packet;

constexpr std::string_view k4 = "1234";
constexpr std::string_view k8 = "12345678";
constexpr std::string_view k20 = "12345678901234567890";

TEST(BinaryRequest, IsCutIntoItsParts) {
  const std::string bytes = request_packet(
      {.opcode = 0x11, .extras = k8, .key = "key", .value = "value", .opaque = 7, .cas = 9});
  const std::string stream = bytes + "next";
  const auto parsed = parse_request(stream, {});
  ASSERT_TRUE(parsed.is_done());
  const Request& request = parsed.value();
  EXPECT_EQ(request.opcode, Opcode::SetQ);
  EXPECT_EQ(request.order.plain, Opcode::Set);
  EXPECT_EQ(request.opaque, 7U);
  EXPECT_EQ(request.cas, 9U);
  EXPECT_EQ(request.extras, k8);
  EXPECT_EQ(request.key, "key");
  EXPECT_EQ(request.value, "value");
  EXPECT_EQ(request.value_bytes, 5U);
  EXPECT_TRUE(request.has_complete_value);
  EXPECT_EQ(request.size_bytes, bytes.size());
}

TEST(BinaryRequest, WaitsForItsLastByteWhereverItIsCut) {
  const std::string bytes =
      request_packet({.opcode = 0x01, .extras = k8, .key = "key", .value = "value"});
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_TRUE(parse_request(std::string_view(bytes).substr(0, size), {}).is_need_more()) << size;
  }
  EXPECT_TRUE(parse_request(bytes, {}).is_done());
}

TEST(BinaryRequest, TakesWhatAnOpcodeIsMadeOf) {
  const PacketText good[] = {
      {.opcode = 0x00, .key = "k"},
      {.opcode = 0x04, .key = "k"},
      {.opcode = 0x05, .extras = k20, .key = "k"},
      {.opcode = 0x07},
      {.opcode = 0x08},
      {.opcode = 0x18, .extras = k4},
      {.opcode = 0x0e, .key = "k", .value = "v"},
      {.opcode = 0x0f, .key = "k"},
      {.opcode = 0x10},
      {.opcode = 0x10, .key = "items"},
      {.opcode = 0x1b, .extras = k4},
      {.opcode = 0x1c, .extras = k4, .key = "k"},
      {.opcode = 0x21, .key = "PLAIN", .value = "x"},
      {.opcode = 0x24, .extras = k4, .key = "k"},
  };
  for (const PacketText& text : good) {
    EXPECT_TRUE(parse_request(request_packet(text), {}).is_done()) << text.opcode;
  }
}

TEST(BinaryRequest, RefusesOtherArguments) {
  const PacketText bad[] = {
      {.opcode = 0x00},
      {.opcode = 0x00, .extras = k4, .key = "k"},
      {.opcode = 0x00, .key = "k", .value = "v"},
      {.opcode = 0x01, .key = "k", .value = "v"},
      {.opcode = 0x01, .extras = k8, .value = "v"},
      {.opcode = 0x04, .key = "k", .value = "v"},
      {.opcode = 0x05, .extras = k8, .key = "k"},
      {.opcode = 0x07, .key = "k"},
      {.opcode = 0x08, .extras = k8},
      {.opcode = 0x0a, .value = "v"},
      {.opcode = 0x0e, .extras = k8, .key = "k", .value = "v"},
      {.opcode = 0x10, .extras = k4},
      {.opcode = 0x1b},
      {.opcode = 0x1c, .key = "k"},
      {.opcode = 0x1d, .extras = k4, .key = "k", .value = "v"},
      {.opcode = 0x20, .key = "k"},
      {.opcode = 0x21, .value = "x"},
  };
  for (const PacketText& text : bad) {
    const auto parsed = parse_request(request_packet(text), {});
    ASSERT_TRUE(parsed.is_failed()) << text.opcode;
    EXPECT_EQ(parsed.error().error, RequestError::BadArguments) << text.opcode;
    EXPECT_EQ(status_of(parsed.error().error), Status::InvalidArguments);
    EXPECT_TRUE(closes_connection(parsed.error().error));
  }
}

TEST(BinaryRequest, AKeyHasAtMost250Bytes) {
  for (const std::size_t size : {249, 250, 251}) {
    const std::string key(size, 'k');
    EXPECT_EQ(parse_request(request_packet({.opcode = 0x00, .key = key}), {}).is_done(),
              size <= 250);
  }
}

TEST(BinaryRequest, RefusesAnUnknownOpcodeWithItsBody) {
  const std::string bytes =
      request_packet({.opcode = 0x70, .extras = k4, .key = "abc", .value = "v", .opaque = 5});
  const auto parsed = parse_request(bytes.substr(0, kHeaderBytes), {});
  ASSERT_TRUE(parsed.is_failed());
  EXPECT_EQ(parsed.error().error, RequestError::UnknownOpcode);
  EXPECT_EQ(parsed.error().opaque, 5U);
  EXPECT_EQ(parsed.error().size_bytes + parsed.error().skip_bytes, bytes.size());
  EXPECT_FALSE(closes_connection(parsed.error().error));
}

TEST(BinaryRequest, RefusesPartsThatAreLongerThanTheWhole) {
  std::string bytes = request_packet({.opcode = 0x01, .extras = k8, .key = "key"});
  bytes[11] = 10;  // Of the 11 bytes of extras and key.
  const auto parsed = parse_request(bytes, {});
  ASSERT_TRUE(parsed.is_failed());
  EXPECT_EQ(parsed.error().error, RequestError::BadLengths);
  EXPECT_EQ(status_of(parsed.error().error), Status::UnknownCommand);
  EXPECT_TRUE(closes_connection(parsed.error().error));
}

TEST(BinaryRequest, KnowsByTheFirstByteThatItIsNone) {
  for (const std::string_view bytes : {"\x81", "get a\r\n", "\0"}) {
    const auto parsed = parse_request(bytes.empty() ? std::string_view("\0", 1) : bytes, {});
    ASSERT_TRUE(parsed.is_failed());
    EXPECT_EQ(parsed.error().error, RequestError::NoRequest);
    EXPECT_TRUE(closes_connection(parsed.error().error));
  }
}

TEST(BinaryRequest, ValuesOverTheLimitAreSkipped) {
  for (const std::size_t size : {15, 16, 17}) {
    const std::string value(size, 'v');
    const std::string bytes =
        request_packet({.opcode = 0x02, .extras = k8, .key = "key", .value = value});
    const auto parsed = parse_request(bytes, {.value_bytes_max = 16, .stream_bytes_min = 1024});
    ASSERT_EQ(parsed.is_failed(), size > 16);
    if (parsed.is_failed()) {
      EXPECT_EQ(parsed.error().error, RequestError::TooLarge);
      EXPECT_EQ(parsed.error().key, "key");
      EXPECT_EQ(parsed.error().skip_bytes, size);
      EXPECT_EQ(parsed.error().size_bytes + size, bytes.size());
      EXPECT_FALSE(closes_connection(parsed.error().error));
    }
  }
}

TEST(BinaryRequest, ValuesOverTheThresholdNeedNotBeThere) {
  for (const std::size_t size : {7, 8, 9}) {
    const std::string value(size, 'v');
    const std::string bytes = request_packet({.opcode = 0x0e, .key = "key", .value = value});
    const auto parsed = parse_request(bytes.substr(0, kHeaderBytes + 3), {.stream_bytes_min = 8});
    ASSERT_EQ(parsed.is_done(), size > 8);
    if (parsed.is_done()) {
      EXPECT_FALSE(parsed.value().has_complete_value);
      EXPECT_EQ(parsed.value().value_bytes, size);
      EXPECT_EQ(parsed.value().size_bytes, kHeaderBytes + 3);
    }
  }
}

TEST(BinaryRequest, WhatAClientSaysOfItselfIsNoItem) {
  const std::string words(kAuthValueBytesMax, 'w');
  const memcache::ParserLimits limits{.value_bytes_max = 16, .stream_bytes_min = 8};
  EXPECT_TRUE(
      parse_request(request_packet({.opcode = 0x21, .key = "PLAIN", .value = words}), limits)
          .is_done());
  const auto longer =
      parse_request(request_packet({.opcode = 0x21, .key = "PLAIN", .value = words + "w"}), limits);
  ASSERT_TRUE(longer.is_failed());
  EXPECT_EQ(longer.error().error, RequestError::BadArguments);
}

}  // namespace
}  // namespace kvferry::memcache_binary
