#include "front/binary_refusal.h"

#include <gtest/gtest.h>

#include "protocol/memcache_binary/packet.h"

namespace kvferry::front {
namespace {

// From the protocol's description of a response header: magic, opcode, key length, extras length,
// data type, status, body length, opaque, CAS.
std::string response(char opcode, std::string_view opaque) {
  std::string bytes("\x81", 1);
  bytes += opcode;
  bytes += std::string(2 + 1 + 1, '\0');
  bytes += std::string("\x00\x81", 2);
  bytes += std::string("\x00\x00\x00\x0f", 4);
  bytes += opaque;
  bytes += std::string(8, '\0');
  return bytes + "Unknown command";
}

TEST(BinaryRefusal, RepeatsOpcodeAndOpaque) {
  std::string request(24, '\0');
  request[0] = memcache_binary::kRequestMagic;
  request[1] = '\x0b';
  request.replace(12, 4, "abcd");
  EXPECT_EQ(compose_binary_refusal(request), response('\x0b', "abcd"));
}

TEST(BinaryRefusal, WhatHasNotComeIsZero) {
  std::string request(24, 'x');
  request[0] = memcache_binary::kRequestMagic;
  for (std::size_t size = 1; size <= request.size(); ++size) {
    std::string opaque(4, '\0');
    for (std::size_t i = 12; i < 16 && i < size; ++i) {
      opaque[i - 12] = 'x';
    }
    EXPECT_EQ(compose_binary_refusal(std::string_view(request).substr(0, size)),
              response(size > 1 ? 'x' : '\0', opaque))
        << size;
  }
}

}  // namespace
}  // namespace kvferry::front
