#include "route/key_effect.h"

#include <gtest/gtest.h>

#include "protocol/memcache/request_parser.h"

namespace kvferry::route {
namespace {

memcache::Request parse(std::string_view bytes) {
  memcache::RequestParser parser{memcache::ParserLimits{}};
  const auto parsed = parser.parse(bytes);
  KVF_CHECK(parsed.is_done());
  return parsed.value();
}

TEST(KeyEffect, IsFoundForEachCommand) {
  const struct {
    std::string_view request;
    KeyEffect effect;
  } cases[] = {
      {"get k\r\n", KeyEffect::Reads},
      {"gets k\r\n", KeyEffect::Reads},
      {"mg k\r\n", KeyEffect::Reads},
      {"mg k v f s c k Oabc q\r\n", KeyEffect::Reads},
      {"mg k v t\r\n", KeyEffect::Looks},
      {"mg k v h l\r\n", KeyEffect::Looks},
      {"mg aw== v b\r\n", KeyEffect::Looks},
      {"me k\r\n", KeyEffect::Looks},
      {"mg k v T30\r\n", KeyEffect::Changes},
      {"mg k v N30\r\n", KeyEffect::Changes},
      {"mg k v R30\r\n", KeyEffect::Changes},
      {"mg k v E7\r\n", KeyEffect::Changes},
      {"mg k v v\r\n", KeyEffect::Changes},
      {"gat 1 k\r\n", KeyEffect::Changes},
      {"gats 1 k\r\n", KeyEffect::Changes},
      {"touch k 1\r\n", KeyEffect::Changes},
      {"set k 0 0 1\r\nx\r\n", KeyEffect::Changes},
      {"cas k 0 0 1 1\r\nx\r\n", KeyEffect::Changes},
      {"append k 0 0 1\r\nx\r\n", KeyEffect::Changes},
      {"incr k 1\r\n", KeyEffect::Changes},
      {"delete k\r\n", KeyEffect::Changes},
      {"ms k 1\r\nx\r\n", KeyEffect::Changes},
      {"md k I T1\r\n", KeyEffect::Changes},
      {"ma k\r\n", KeyEffect::Changes},
      {"mn\r\n", KeyEffect::Looks},
  };
  for (const auto& each : cases) {
    EXPECT_EQ(effect_of(parse(each.request)), each.effect) << each.request;
  }
}

TEST(KeyEffect, KeysInBase64AreDecoded) {
  KeyBuffer buffer;
  EXPECT_EQ(plain_key(parse("mg aw== v b\r\n"), buffer), "k");
  EXPECT_EQ(plain_key(parse("mg aw== v\r\n"), buffer), "aw==");
  EXPECT_EQ(plain_key(parse("md ?? b\r\n"), buffer), "??");
}

}  // namespace
}  // namespace kvferry::route
