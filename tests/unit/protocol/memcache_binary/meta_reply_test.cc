#include "protocol/memcache_binary/meta_reply.h"

#include <gtest/gtest.h>

namespace kvferry::memcache_binary {
namespace {

MetaReply read(Opcode plain, std::string_view line) {
  return read_meta_reply(plain, memcache::find_reply_code(line), line);
}

TEST(BinaryMetaReply, ReadsWhatAHitSays) {
  const MetaReply reply = read(Opcode::Get, "VA 12 f4294967295 c18446744073709551615 W");
  EXPECT_EQ(reply.status, Status::Ok);
  EXPECT_EQ(reply.value_bytes, 12U);
  EXPECT_EQ(reply.client_flags, 4294967295U);
  EXPECT_EQ(reply.cas, ~std::uint64_t{0});
  EXPECT_EQ(reply.text, "");
}

TEST(BinaryMetaReply, ReadsSuccessWithoutValue) {
  EXPECT_EQ(read(Opcode::Set, "HD c5").cas, 5U);
  EXPECT_EQ(read(Opcode::Set, "HD").status, Status::Ok);  // Of a server that knows no flag c here.
  EXPECT_EQ(read(Opcode::Touch, "HD f3 c5").client_flags, 3U);
  EXPECT_EQ(read(Opcode::Flush, "OK").status, Status::Ok);
}

TEST(BinaryMetaReply, FailuresHaveTheStatusOfTheOpcode) {
  struct Case {
    Opcode opcode;
    std::string_view line;
    Status status;
  };
  const Case cases[] = {
      {Opcode::Get, "EN", Status::NotFound},
      {Opcode::Get, "EN kfoo", Status::NotFound},
      {Opcode::Delete, "NF", Status::NotFound},
      {Opcode::Increment, "NF", Status::NotFound},
      {Opcode::Set, "NF", Status::NotFound},
      {Opcode::Set, "NS", Status::NotStored},
      {Opcode::Set, "EX", Status::Exists},
      {Opcode::Add, "NS", Status::Exists},
      {Opcode::Replace, "NS", Status::NotFound},
      {Opcode::Append, "NS", Status::NotStored},
      {Opcode::Prepend, "NF", Status::NotStored},
      {Opcode::Append, "EX", Status::Exists},
      {Opcode::Get, "ERROR", Status::UnknownCommand},
      {Opcode::Set, "SERVER_ERROR object too large for cache", Status::TooLarge},
      {Opcode::Set, "SERVER_ERROR out of memory storing object", Status::OutOfMemory},
      {Opcode::Increment, "CLIENT_ERROR cannot increment or decrement non-numeric value",
       Status::NonNumeric},
      {Opcode::Flush, "CLIENT_ERROR flush_all not allowed", Status::AuthError},
      {Opcode::Get, "STORED", Status::InternalError},
      {Opcode::Get, "VA", Status::InternalError},
      {Opcode::Get, "VA x f0 c1", Status::InternalError},
      {Opcode::Get, "VA 1 fx c1", Status::InternalError},
      {Opcode::Get, "VA 1 f0 c18446744073709551616", Status::InternalError},
  };
  for (const Case& each : cases) {
    const MetaReply reply = read(each.opcode, each.line);
    EXPECT_EQ(reply.status, each.status) << each.line;
    EXPECT_EQ(reply.text, status_text(each.status)) << each.line;
    EXPECT_EQ(reply.value_bytes, 0U) << each.line;
  }
}

TEST(BinaryMetaReply, OtherFailuresKeepTheirWords) {
  const MetaReply failure = read(Opcode::Get, "SERVER_ERROR backend failure");
  EXPECT_EQ(failure.status, Status::InternalError);
  EXPECT_EQ(failure.text, "backend failure");
  EXPECT_EQ(read(Opcode::Get, "SERVER_ERROR").text, "Internal error");
  const MetaReply bad = read(Opcode::Get, "CLIENT_ERROR bad command line format");
  EXPECT_EQ(bad.status, Status::InvalidArguments);
  EXPECT_EQ(bad.text, "bad command line format");
}

}  // namespace
}  // namespace kvferry::memcache_binary
