#include "call/call.h"

#include <gtest/gtest.h>

namespace kvferry::call {
namespace {

using memcache::ReplyCode;

TEST(IsHidden, FollowsTheTableOfEveryQuietAndCode) {
  for (int raw = 0; raw <= static_cast<int>(ReplyCode::Other); ++raw) {
    const auto code = static_cast<ReplyCode>(raw);
    EXPECT_FALSE(is_hidden(Quiet::No, code));
    EXPECT_TRUE(is_hidden(Quiet::All, code));
    EXPECT_EQ(is_hidden(Quiet::Success, code),
              code == ReplyCode::MetaHd || code == ReplyCode::MetaVa);
    EXPECT_EQ(is_hidden(Quiet::Miss, code), code == ReplyCode::MetaEn || code == ReplyCode::End);
    EXPECT_EQ(is_hidden(Quiet::Good, code), !memcache::is_error(code));
    const bool is_done = code == ReplyCode::MetaHd || code == ReplyCode::MetaVa ||
                         code == ReplyCode::MetaMe || code == ReplyCode::Ok ||
                         code == ReplyCode::Number || code == ReplyCode::Value;
    const bool is_miss = code == ReplyCode::MetaEn || code == ReplyCode::End;
    EXPECT_EQ(is_hidden(Quiet::Done, code), is_done || is_miss);
  }
}

class OneSink final : public ReplySink {
 public:
  Flow on_reply(Call& call, const ReplyPart& part) override {
    last_call = &call;
    bytes = part.bytes;
    last = part;
    return Flow::Pause;
  }
  Call* last_call = nullptr;
  std::string bytes;
  ReplyPart last{};
};

TEST(Answer, IsOneWholePart) {
  base::MemoryBudget budget(0);
  CallPool calls(budget);
  OneSink sink;
  Call& call = calls.acquire();
  call.sink = &sink;
  EXPECT_EQ(answer(call, "STORED\r\n", ReplyCode::Stored), Flow::Pause);
  EXPECT_EQ(sink.last_call, &call);
  EXPECT_EQ(sink.bytes, "STORED\r\n");
  EXPECT_EQ(sink.last.code, ReplyCode::Stored);
  EXPECT_TRUE(sink.last.is_first);
  EXPECT_TRUE(sink.last.is_last);
  EXPECT_FALSE(sink.last.is_broken);
  calls.release(call);
}

TEST(CallPool, GivesCleanCallsAndCountsThem) {
  base::MemoryBudget budget(0);
  base::BlockPool blocks(budget);
  CallPool calls(budget);
  Call& used = calls.acquire();
  used.lane = 7;
  used.is_done = used.is_paused = used.is_hidden = used.body_waits = true;
  used.stash.append(blocks, "left over");
  calls.release(used);
  EXPECT_EQ(calls.live(), 0U);
  Call& again = calls.acquire();
  EXPECT_EQ(&again, &used) << "the test needs the same piece";
  EXPECT_EQ(again.lane, 0U);
  EXPECT_FALSE(again.is_done || again.is_paused || again.is_hidden || again.body_waits);
  EXPECT_TRUE(again.stash.empty());
  EXPECT_EQ(again.sink, nullptr);
  EXPECT_EQ(again.body_sink, nullptr);
  EXPECT_EQ(calls.live(), 1U);
  calls.release(again);
}

}  // namespace
}  // namespace kvferry::call
