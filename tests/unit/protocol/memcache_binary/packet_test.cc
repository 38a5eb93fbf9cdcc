#include "protocol/memcache_binary/packet.h"

#include <gtest/gtest.h>

#include "tests/support/binary_packets.h"

namespace kvferry::memcache_binary {
namespace {

TEST(BinaryPacket, OpcodesHaveTheNumbersOfTheProtocol) {
  EXPECT_EQ(static_cast<int>(Opcode::GetQ), 0x09);
  EXPECT_EQ(static_cast<int>(Opcode::Stat), 0x10);
  EXPECT_EQ(static_cast<int>(Opcode::PrependQ), 0x1a);
  EXPECT_EQ(static_cast<int>(Opcode::GatQ), 0x1e);
  EXPECT_EQ(static_cast<int>(Opcode::SaslStep), 0x22);
  EXPECT_EQ(static_cast<int>(Opcode::GatKQ), 0x24);
}

TEST(BinaryPacket, EveryOpcodeOfTheProtocolIsKnownAndNoOther) {
  int known = 0;
  for (int number = 0; number < 256; ++number) {
    const Order order = order_of(static_cast<Opcode>(number));
    if (order.shape == Shape::Unknown) {
      continue;
    }
    ++known;
    // The plain form is its own plain form, and answers always.
    const Order plain = order_of(order.plain);
    EXPECT_EQ(plain.plain, order.plain) << number;
    EXPECT_EQ(plain.shape, order.shape) << number;
    EXPECT_FALSE(plain.is_quiet || plain.returns_key) << number;
  }
  EXPECT_EQ(known, 36);
}

TEST(BinaryPacket, QuietAndKeyedFormsAreToldApart) {
  EXPECT_TRUE(order_of(Opcode::GetKQ).is_quiet && order_of(Opcode::GetKQ).returns_key);
  EXPECT_TRUE(order_of(Opcode::GatK).returns_key && !order_of(Opcode::GatK).is_quiet);
  EXPECT_TRUE(order_of(Opcode::SetQ).is_quiet && !order_of(Opcode::SetQ).returns_key);
  EXPECT_EQ(order_of(Opcode::GatKQ).plain, Opcode::Gat);
  EXPECT_EQ(order_of(Opcode::QuitQ).plain, Opcode::Quit);
}

TEST(BinaryPacket, ComposesAHeader) {
  const HeaderBytes header = compose_header({.opcode = Opcode::GetK,
                                             .status = Status::UnknownCommand,
                                             .opaque = 0x01020304,
                                             .cas = 0x1122334455667788,
                                             .extras_bytes = 4,
                                             .key_bytes = 250,
                                             .value_bytes = 0x10000});
  const std::string key(250, 'k');
  const std::string value(0x10000, 'v');
  EXPECT_EQ(view_of(header), test::response_packet({.opcode = 0x0c,
                                                    .extras = "flag",
                                                    .key = key,
                                                    .value = value,
                                                    .opaque = 0x01020304,
                                                    .cas = 0x1122334455667788,
                                                    .status = 0x81})
                                 .substr(0, kHeaderBytes));
}

TEST(BinaryPacket, NumbersRoundTrip) {
  for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{0xff00},
                                     std::uint64_t{0x8000000000000001}, ~std::uint64_t{0}}) {
    EXPECT_EQ(read_big_endian<std::uint64_t>(view_of(big_endian(number))), number);
    EXPECT_EQ(view_of(big_endian(number)), test::big_endian(number, 8));
  }
  EXPECT_EQ(read_big_endian<std::uint16_t>("\x12\x34"), 0x1234);
}

TEST(BinaryPacket, EveryFailureHasAText) {
  EXPECT_EQ(status_text(Status::Ok), "");
  for (const Status status :
       {Status::NotFound, Status::Exists, Status::TooLarge, Status::InvalidArguments,
        Status::NotStored, Status::NonNumeric, Status::AuthError, Status::UnknownCommand,
        Status::OutOfMemory, Status::InternalError}) {
    EXPECT_NE(status_text(status), "") << static_cast<int>(status);
  }
}

}  // namespace
}  // namespace kvferry::memcache_binary
