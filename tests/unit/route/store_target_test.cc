// Conversations with the embedded store, byte for byte; the parser and quiet rules are the real
// ones.
#include "route/store_target.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "tests/unit/route/store_conversation.h"

namespace kvferry::route {
namespace {

using memcache::ReplyCode;

struct Exchange {
  std::string_view said;
  std::string_view answered;
};

/// Each test is one conversation, cut where an answer is looked at.
void expect_exchanges(std::initializer_list<Exchange> exchanges,
                      const store::StoreConfig& config = {},
                      const StoreTargetOptions& options = {}) {
  StoreConversation client(config, options);
  for (const Exchange& each : exchanges) {
    EXPECT_EQ(client.say(each.said), each.answered) << each.said;
  }
}

TEST(StoreTarget, ClassicRetrieval) {
  expect_exchanges({
      {"get a\r\n", "END\r\n"},
      {"set a 1 0 1\r\na\r\nset b 2 0 2\r\nbb\r\nset c 4294967295 0 0\r\n\r\n",
       "STORED\r\nSTORED\r\nSTORED\r\n"},
      {"get a\r\n", "VALUE a 1 1\r\na\r\nEND\r\n"},
      {"get c a x b\r\n",
       "VALUE c 4294967295 0\r\n\r\nVALUE a 1 1\r\na\r\nVALUE b 2 2\r\nbb\r\nEND\r\n"},
      {"get a a\r\n", "VALUE a 1 1\r\na\r\nVALUE a 1 1\r\na\r\nEND\r\n"},
      {"get  a   b \r\n", "VALUE a 1 1\r\na\r\nVALUE b 2 2\r\nbb\r\nEND\r\n"},
      {"gat 100 a x\r\n", "VALUE a 1 1\r\na\r\nEND\r\n"},
      {"mg a t\r\n", "HD t100\r\n"},
      {"gat -1 a\r\nget a\r\n", "VALUE a 1 1\r\na\r\nEND\r\nEND\r\n"},
      {"gat x b\r\ngats 1.5 b\r\n",
       "CLIENT_ERROR invalid exptime argument\r\nCLIENT_ERROR invalid exptime argument\r\n"},
  });
}

TEST(StoreTarget, ClassicStorage) {
  expect_exchanges({
      {"replace k 0 0 1\r\n1\r\nappend k 0 0 1\r\n1\r\nprepend k 0 0 1\r\n1\r\n",
       "NOT_STORED\r\nNOT_STORED\r\nNOT_STORED\r\n"},
      {"add k 1 0 1\r\n2\r\nadd k 2 0 1\r\n3\r\n", "STORED\r\nNOT_STORED\r\n"},
      {"append k 9 9 1\r\n3\r\nprepend k 9 9 1\r\n1\r\nget k\r\n",
       "STORED\r\nSTORED\r\nVALUE k 1 3\r\n123\r\nEND\r\n"},
      {"mg k t\r\n", "HD t-1\r\n"},
      {"replace k 3 0 1\r\n4\r\nget k\r\n", "STORED\r\nVALUE k 3 1\r\n4\r\nEND\r\n"},
      {"set k -1 0 1\r\nx\r\nset k 0 x 1\r\nx\r\nset k 0 99999999999 1\r\nx\r\n",
       "CLIENT_ERROR bad command line format\r\nCLIENT_ERROR bad command line format\r\n"
       "CLIENT_ERROR bad command line format\r\n"},
      {"set k 0 -1 1\r\nx\r\nget k\r\n", "STORED\r\nEND\r\n"},
  });
}

TEST(StoreTarget, ClassicCas) {
  expect_exchanges({
      {"cas k 0 0 1 1\r\nx\r\n", "NOT_FOUND\r\n"},
      {"ms k 1 E10 F3\r\na\r\ngets k\r\n", "HD\r\nVALUE k 3 1 10\r\na\r\nEND\r\n"},
      {"cas k 4 0 1 11\r\nb\r\ncas k 4 0 1 0\r\nb\r\n", "EXISTS\r\nEXISTS\r\n"},
      {"cas k 4 0 1 10\r\nb\r\nget k\r\n", "STORED\r\nVALUE k 4 1\r\nb\r\nEND\r\n"},
      {"cas k 4 0 1 10\r\nc\r\n", "EXISTS\r\n"},
      {"cas k 4 0 1 x\r\nc\r\nget k\r\n",
       "CLIENT_ERROR bad command line format\r\nVALUE k 4 1\r\nb\r\nEND\r\n"},
  });
}

TEST(StoreTarget, ClassicNumbers) {
  constexpr std::string_view kNonNumeric =
      "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n";
  expect_exchanges({
      {"incr n 1\r\ndecr n 1\r\n", "NOT_FOUND\r\nNOT_FOUND\r\n"},
      {"set n 77 100 1\r\n9\r\nincr n 1\r\nget n\r\n",
       "STORED\r\n10\r\nVALUE n 77 2\r\n10\r\nEND\r\n"},
      {"mg n t\r\n", "HD t100\r\n"},
      {"decr n 3\r\nget n\r\n", "7\r\nVALUE n 77 2\r\n7 \r\nEND\r\n"},
      {"incr n 92\r\nincr n 1\r\n", "99\r\n100\r\n"},
      {"decr n 1000\r\nget n\r\n", "0\r\nVALUE n 77 3\r\n0  \r\nEND\r\n"},
      {"incr n 18446744073709551615\r\nincr n 1\r\nincr n 5\r\n",
       "18446744073709551615\r\n0\r\n5\r\n"},
      {"incr n x\r\nincr n -1\r\ndecr n 1.5\r\nincr n 18446744073709551616\r\n",
       "CLIENT_ERROR invalid numeric delta argument\r\nCLIENT_ERROR invalid numeric delta "
       "argument\r\n"
       "CLIENT_ERROR invalid numeric delta argument\r\nCLIENT_ERROR invalid numeric delta "
       "argument\r\n"},
  });
  for (const std::string_view text : {"", "x", "-1", "1x", " ", "18446744073709551616", " 1"}) {
    StoreConversation client;
    client.say("set t 0 0 " + std::to_string(text.size()) + "\r\n" + std::string(text) + "\r\n");
    EXPECT_EQ(client.say("incr t 1\r\n"), kNonNumeric) << text;
  }
}

TEST(StoreTarget, ClassicTouchAndDelete) {
  expect_exchanges({
      {"touch k 0\r\ndelete k\r\n", "NOT_FOUND\r\nNOT_FOUND\r\n"},
      {"set k 0 0 1\r\nv\r\ntouch k 50\r\nmg k t\r\n", "STORED\r\nTOUCHED\r\nHD t50\r\n"},
      {"touch k 0\r\nmg k t\r\n", "TOUCHED\r\nHD t-1\r\n"},
      {"touch k x\r\ntouch k 99999999999\r\n",
       "CLIENT_ERROR invalid exptime argument\r\nCLIENT_ERROR invalid exptime argument\r\n"},
      {"touch k -1\r\nget k\r\n", "TOUCHED\r\nEND\r\n"},
      {"set k 0 0 1\r\nv\r\ndelete k 0\r\nget k\r\n", "STORED\r\nDELETED\r\nEND\r\n"},
  });
}

TEST(StoreTarget, NoreplyHidesEverythingAndDoesItNevertheless) {
  expect_exchanges({
      {"set n 0 0 1 noreply\r\n5\r\nincr n 1 noreply\r\ntouch n 0 noreply\r\nincr x 1 noreply\r\n",
       ""},
      {"get n\r\ndelete n noreply\r\nget n\r\n", "VALUE n 0 1\r\n6\r\nEND\r\nEND\r\n"},
      {"flush_all noreply\r\nflush_all 0 noreply\r\n", ""},
  });
}

TEST(StoreTarget, FlushAll) {
  expect_exchanges({
      {"set k 0 0 1\r\nv\r\nflush_all\r\nget k\r\n", "STORED\r\nOK\r\nEND\r\n"},
      {"set k 0 0 1\r\nv\r\nflush_all x\r\nget k\r\n",
       "STORED\r\nCLIENT_ERROR invalid exptime argument\r\nVALUE k 0 1\r\nv\r\nEND\r\n"},
      {"flush_all -5\r\nget k\r\n", "OK\r\nEND\r\n"},
  });
  expect_exchanges(
      {{"set k 0 0 1\r\nv\r\nflush_all\r\nget k\r\n",
        "STORED\r\nCLIENT_ERROR flush_all not allowed\r\nVALUE k 0 1\r\nv\r\nEND\r\n"}},
      {}, StoreTargetOptions{.is_flush_enabled = false});
  StoreConversation client;
  client.say("set k 0 0 1\r\nv\r\nflush_all 10\r\n");
  client.advance(9);
  EXPECT_EQ(client.say("get k\r\n"), "VALUE k 0 1\r\nv\r\nEND\r\n");
  client.advance(1);
  EXPECT_EQ(client.say("get k\r\n"), "END\r\n");
}

TEST(StoreTarget, MetaGet) {
  expect_exchanges({
      {"mg none\r\nmg none v k s\r\nmg none Oabc v k\r\nmg none q v\r\n",
       "EN\r\nEN knone\r\nEN Oabc knone\r\n"},
      {"ms key 3 F42 E7\r\nabc\r\nmg key Oq k f s v t c\r\n",
       "HD\r\nVA 3 Oq kkey f42 s3 t-1 c7\r\nabc\r\n"},
      {"mg key c t s f k Oq\r\n", "HD c7 t-1 s3 f42 kkey Oq\r\n"},
      {"mg key v C7\r\nmg key v C8\r\n", "HD\r\nVA 3\r\nabc\r\n"},
      {"mg key t T100\r\nmg key T50 t\r\nmg key t\r\n", "HD t-1\r\nHD t50\r\nHD t50\r\n"},
      {"mg key T-1 t\r\nmg key\r\n", "HD t0\r\nEN\r\n"},
      {"ms k 1\r\nv\r\nmg k h u\r\nmg k h\r\nmg k h u\r\n", "HD\r\nHD h0\r\nHD h0\r\nHD h1\r\n"},
      {"mg k Tx\r\nmg k v v\r\nmg k !\r\n",
       "CLIENT_ERROR bad token in command line format\r\nCLIENT_ERROR duplicate flag\r\n"
       "CLIENT_ERROR invalid flag\r\n"},
  });
}

TEST(StoreTarget, MetaGetTellsTheTimeSinceTheLastUse) {
  StoreConversation client;
  client.say("ms k 1\r\nv\r\n");
  client.advance(5);
  EXPECT_EQ(client.say("mg k l u\r\nmg k l\r\nmg k l\r\n"), "HD l5\r\nHD l5\r\nHD l0\r\n");
}

TEST(StoreTarget, MetaVivifyAndLeases) {
  expect_exchanges({
      {"mg aa N30 s v c t E12\r\nmg aa N30 s v c t E13\r\n",
       "VA 0 s0 c12 t30 W\r\n\r\nVA 0 s0 c12 t30 Z\r\n\r\n"},
      {"ms aa 1\r\nx\r\nmg aa v\r\n", "HD\r\nVA 1\r\nx\r\n"},
      {"ms bb 1 T10\r\nv\r\nmg bb R10 t\r\nmg bb R11 t\r\nmg bb R11 t\r\n",
       "HD\r\nHD t10\r\nHD t10 W\r\nHD t10 Z\r\n"},
      {"ms cc 1 E5\r\nv\r\nmd cc I T60\r\nmg cc v t\r\nmg cc v\r\n",
       "HD\r\nHD\r\nVA 1 t60 X W\r\nv\r\nVA 1 Z X\r\nv\r\n"},
      {"ms cc 1\r\nw\r\nmg cc v\r\n", "HD\r\nVA 1\r\nw\r\n"},
      {"ms dd 1 E10\r\na\r\nms dd 1 C5 I E20\r\nb\r\nmg dd v c\r\nms dd 1 C15 I\r\nz\r\n"
       "ms dd 1 C25 I E30\r\ny\r\nmg dd v\r\n",
       "HD\r\nHD\r\nVA 1 c20 X W\r\nb\r\nHD\r\nEX\r\nVA 1 Z X\r\nz\r\n"},
      {"ms ee 1\r\n8\r\nmd ee I\r\nma ee v\r\nmg ee v\r\nmd ee I\r\nappend ee 0 0 1\r\n0\r\nmg ee "
       "v\r\n",
       "HD\r\nHD\r\nVA 1\r\n9\r\nVA 1 X W\r\n9\r\nHD\r\nSTORED\r\nVA 2\r\n90\r\n"},
  });
}

TEST(StoreTarget, ExptimeFlagsCountInTheirOrder) {
  // Of an item that N makes; as memcached 1.6.18 answers.
  expect_exchanges({
      {"mg a t N30 T60\r\nmg a t\r\n", "HD t-1 W\r\nHD t60 Z\r\n"},
      {"mg b N30 t T60\r\nmg b t\r\n", "HD t30 W\r\nHD t60 Z\r\n"},
      {"mg c N30 T60 t\r\nmg c t\r\n", "HD t60 W\r\nHD t60 Z\r\n"},
      {"mg d T60 t N30\r\nmg d t\r\n", "HD t60 W\r\nHD t30 Z\r\n"},
      {"mg e T60 N30 t\r\nmg e t\r\n", "HD t30 W\r\nHD t30 Z\r\n"},
      {"mg f N30 T0 R40 t\r\nmg f t\r\n", "HD t-1 W\r\nHD t-1 Z\r\n"},
      {"ma n t N30 T60\r\nmg n t\r\n", "HD t-1\r\nHD t60\r\n"},
      {"ma o N30 T60 t v\r\nmg o t\r\n", "VA 1 t60\r\n0\r\nHD t60\r\n"},
      {"ma p T60 N30 t\r\nmg p t\r\n", "HD t30\r\nHD t30\r\n"},
  });
  // On a hit N says nothing.
  expect_exchanges({
      {"ms a 1 T20\r\n1\r\nmg a t N30 T60\r\nmg a N30 t\r\n", "HD\r\nHD t20\r\nHD t60\r\n"},
      {"ms b 1 T20\r\n1\r\nmg b T60 N30 t\r\nma b N30 t\r\n", "HD\r\nHD t60\r\nHD t60\r\n"},
  });
}

TEST(StoreTarget, MetaSet) {
  expect_exchanges({
      {"ms k 5 k Oabc s T90 F1\r\nhello\r\nmg k t f\r\n", "HD kk Oabc s5\r\nHD t90 f1\r\n"},
      {"ms k 3 MA s k\r\n!!!\r\nms k 3 ME k O9\r\nno!\r\nms n 1 MR\r\nx\r\nms n 1 MP\r\nx\r\n",
       "HD s8 kk\r\nNS kk O9\r\nNS\r\nNS\r\n"},
      {"ms a 2 MA N60\r\nxy\r\nms a 2 MP N60\r\nzw\r\nmg a v t\r\n",
       "HD\r\nHD\r\nVA 4 t60\r\nzwxy\r\n"},
      {"ms c 1 E10\r\na\r\nms c 1 MR C9\r\nb\r\nms c 1 MR C10 E20\r\nc\r\nms c 1 MA C10\r\nd\r\n"
       "ms c 1 MA C20 E30\r\ne\r\nmg c v c\r\n",
       "HD\r\nEX\r\nHD\r\nEX\r\nHD\r\nVA 2 c30\r\nce\r\n"},
      {"ms c 1 ME c\r\nw\r\nms none 1 C5 c\r\nw\r\n", "NS c0\r\nNF c0\r\n"},
      {"ms c 2 MX\r\nhi\r\nms c 2 T1 T2\r\nhi\r\nms c 2 MSS\r\nhi\r\nmg c v\r\n",
       "CLIENT_ERROR invalid mode for ms M token\r\nCLIENT_ERROR duplicate flag\r\nHD\r\n"
       "VA 2\r\nhi\r\n"},
  });
}

TEST(StoreTarget, MetaDelete) {
  expect_exchanges({
      {"md k\r\nmd k k Oab\r\nms k 1\r\nv\r\nmd k k Oab\r\nmg k\r\n",
       "NF\r\nNF kk Oab\r\nHD\r\nHD kk Oab\r\nEN\r\n"},
      {"ms k 1 E5\r\nv\r\nmd k C6\r\nmd k C5\r\n", "HD\r\nEX\r\nHD\r\n"},
      {"ms k 5 F9 T100 E4\r\nhello\r\nmd k x\r\nmg k v f s t c\r\n",
       "HD\r\nHD\r\nVA 0 f0 s0 t-1 c4\r\n\r\n"},
      {"ms k 5 F9 E4\r\nhello\r\nmd k x F7 T30 E9\r\nmg k v f s t c\r\n",
       "HD\r\nHD\r\nVA 0 f7 s0 t30 c9\r\n\r\n"},
      {"ms k 1 E5\r\nv\r\nmd k I E9\r\nms k 1 C5\r\nx\r\nms k 1 C9\r\ny\r\nmg k v\r\n",
       "HD\r\nHD\r\nEX\r\nHD\r\nVA 1\r\ny\r\n"},
  });
}

TEST(StoreTarget, MetaArithmetic) {
  expect_exchanges({
      {"ma n\r\nma n k O1\r\n", "NF\r\nNF kn O1\r\n"},
      {"ma n N60 J13 v t\r\nma n N50 J13 v\r\n", "VA 2 t60\r\n13\r\nVA 2\r\n14\r\n"},
      {"ma n MD D4 v\r\nma n M- v\r\nma n M+ D100 v\r\nma n MI\r\n",
       "VA 2\r\n10\r\nVA 1\r\n9\r\nVA 3\r\n109\r\nHD\r\n"},
      {"ma n t T90\r\nma n t\r\nma n E50 c\r\nma n C51\r\nma n C50 v\r\n",
       "HD t60\r\nHD t90\r\nHD c50\r\nEX\r\nVA 3\r\n114\r\n"},
      {"ma n MX\r\nma n Dx\r\nma n v v\r\n",
       "CLIENT_ERROR invalid mode for ma M token\r\nCLIENT_ERROR invalid or duplicate flag\r\n"
       "CLIENT_ERROR invalid or duplicate flag\r\n"},
      {"ms t 1\r\nx\r\nma t q\r\n",
       "HD\r\nCLIENT_ERROR cannot increment or decrement non-numeric value\r\n"},
  });
}

TEST(StoreTarget, MetaQuiet) {
  expect_exchanges({
      {"ms k 1 q\r\n1\r\nms k 1 ME q\r\n2\r\nms none 1 C1 q\r\n3\r\nmn\r\n", "NS\r\nNF\r\nMN\r\n"},
      {"ma none q\r\nma k v q\r\nma k q\r\nmn\r\n", "NF\r\nMN\r\n"},
      {"md none q\r\nmd k C1 q\r\nmd k q\r\nmn\r\n", "NF\r\nEX\r\nMN\r\n"},
      {"mg a v q k O1\r\nms b 1\r\nB\r\nmg b q v\r\nmn\r\n", "HD\r\nVA 1\r\nB\r\nMN\r\n"},
  });
}

TEST(StoreTarget, Base64Keys) {
  expect_exchanges(
      {
          {"ms Zm9v 3 b k\r\nabc\r\nmg Zm9v b v k\r\nmg foo v k\r\n",
           "HD kZm9v b\r\nVA 3 kZm9v b\r\nabc\r\nVA 3 kZm9v b\r\nabc\r\n"},
          {"get foo\r\nme Zm9v b\r\n",
           "VALUE foo 0 3\r\nabc\r\nEND\r\nME Zm9v exp=-1 la=0 cas=1 fetch=yes cls=1 size=20\r\n"},
          {"md Zm9v b k Oq\r\nmd Zm9v b k\r\nmg Zm9v b k v\r\n",
           "HD kZm9v b Oq\r\nNF kZm9v b\r\nEN kZm9v b\r\n"},
          {"mg !!!! b\r\nmg Zm9 b\r\n",
           "CLIENT_ERROR error decoding key\r\nCLIENT_ERROR error decoding key\r\n"},
          {"ma Y250 b N0 J5 v k\r\nget cnt\r\n",
           "VA 1 kY250 b\r\n5\r\nVALUE cnt 0 1\r\n5\r\nEND\r\n"},
      },
      store::StoreConfig{.shard_count = 1});
}

TEST(StoreTarget, MetaDebug) {
  StoreConversation client(store::StoreConfig{.shard_count = 1});
  EXPECT_EQ(client.say("me none\r\nms k 3 T100\r\nabc\r\n"), "EN\r\nHD\r\n");
  client.advance(3);
  EXPECT_EQ(client.say("me k\r\nmg k\r\nme k\r\n"),
            "ME k exp=97 la=3 cas=1 fetch=no cls=1 size=20\r\nHD\r\n"
            "ME k exp=97 la=0 cas=1 fetch=yes cls=1 size=20\r\n");
}

TEST(StoreTarget, UnknownCommandsAreErrors) {
  StoreConversation client;
  EXPECT_EQ(client.say("slabs reassign 1 2\r\nmn\r\n"), "ERROR\r\nMN\r\n");
}

TEST(StoreTarget, CountsAsMemcachedCounts) {
  StoreConversation client;
  client.say(
      "set a 0 0 1\r\n1\r\nget a b\r\ngat 0 a b\r\nmg a\r\nmg b\r\nmg a T0\r\nincr a 1\r\nincr b "
      "1\r\n"
      "decr a 1\r\ndecr b 1\r\nma a\r\nma b\r\ndelete b\r\nmd b\r\ntouch a 0\r\ntouch b 0\r\n"
      "cas b 0 0 1 1\r\nx\r\ncas a 0 0 1 999\r\nx\r\nflush_all\r\nget a\r\nset e 0 -1 1\r\nx\r\n"
      "get e\r\n");
  const struct {
    StoreCount what;
    std::uint64_t expected;
  } cases[] = {
      {StoreCount::CmdGet, 9},     {StoreCount::GetHits, 2},    {StoreCount::GetMisses, 4},
      {StoreCount::CmdTouch, 5},   {StoreCount::TouchHits, 3},  {StoreCount::TouchMisses, 2},
      {StoreCount::CmdSet, 4},     {StoreCount::CmdMeta, 6},    {StoreCount::CmdFlush, 1},
      {StoreCount::IncrHits, 2},   {StoreCount::IncrMisses, 2}, {StoreCount::DecrHits, 1},
      {StoreCount::DecrMisses, 1}, {StoreCount::DeleteHits, 0}, {StoreCount::DeleteMisses, 2},
      {StoreCount::CasMisses, 1},  {StoreCount::CasBadval, 1},  {StoreCount::CasHits, 0},
      {StoreCount::GetFlushed, 1}, {StoreCount::GetExpired, 1}, {StoreCount::TooLarge, 0},
  };
  for (const auto& each : cases) {
    EXPECT_EQ(client.target().stats().get(each.what), each.expected) << static_cast<int>(each.what);
  }
  StoreCommandTotals totals{};
  client.target().stats().add_to(totals);
  const auto lines = store_stat_lines(totals, client.store().snapshot());
  const auto value = [&](std::string_view name) {
    for (const StatLine& line : lines) {
      if (line.name == name) {
        return line.value;
      }
    }
    return ~std::uint64_t{0};
  };
  EXPECT_EQ(value("cmd_get"), 9U);
  EXPECT_EQ(value("store_too_large"), 0U);
  EXPECT_EQ(value("limit_maxbytes"), store::kLimitBytesDefault);
  EXPECT_EQ(value("curr_items"), 0U);
  client.target().stats().reset();
  EXPECT_EQ(client.target().stats().get(StoreCount::CmdGet), 0U);
}

TEST(StoreTarget, SaysWhatKindOfReplyItIs) {
  const struct {
    std::string_view said;
    ReplyCode code;
  } cases[] = {
      {"get none\r\n", ReplyCode::End},
      {"set k 0 0 1\r\n1\r\n", ReplyCode::Stored},
      {"get k none\r\n", ReplyCode::Value},
      {"add k 0 0 1\r\n1\r\n", ReplyCode::NotStored},
      {"cas k 0 0 1 99\r\n1\r\n", ReplyCode::Exists},
      {"incr k 1\r\n", ReplyCode::Number},
      {"touch k 0\r\n", ReplyCode::Touched},
      {"mg k v\r\n", ReplyCode::MetaVa},
      {"mg k\r\n", ReplyCode::MetaHd},
      {"ma k v\r\n", ReplyCode::MetaVa},
      {"me k\r\n", ReplyCode::MetaMe},
      {"ms k 1 ME\r\n1\r\n", ReplyCode::MetaNs},
      {"md k C99\r\n", ReplyCode::MetaEx},
      {"delete k\r\n", ReplyCode::Deleted},
      {"delete k\r\n", ReplyCode::NotFound},
      {"md k\r\n", ReplyCode::MetaNf},
      {"mg k\r\n", ReplyCode::MetaEn},
      {"mn\r\n", ReplyCode::MetaMn},
      {"flush_all\r\n", ReplyCode::Ok},
      {"touch k x\r\n", ReplyCode::ClientError},
  };
  StoreConversation client;
  for (const auto& each : cases) {
    client.say(each.said);
    EXPECT_EQ(client.sink().code, each.code) << each.said;
  }
}

}  // namespace
}  // namespace kvferry::route
