#include "lua/tickets.h"

#include <array>
#include <string>

#include <gtest/gtest.h>

#include "lua/generator.h"
#include "tests/unit/lua/worker_rig.h"

namespace kvferry::lua {
namespace {

constexpr std::uint32_t kLastSerial = (1U << Ticket::kSerialBits) - 1;

/// Slots are only pointed at by the book.
ScriptSlot& slot_number(std::size_t number) {
  static std::array<std::max_align_t, 8> places;
  return reinterpret_cast<ScriptSlot&>(places.at(number));
}

TEST(Ticket, TellsItsParts) {
  for (const std::uint32_t number : {0U, 1U, (1U << Ticket::kNumberBits) - 1}) {
    for (const std::uint32_t serial : {0U, 77U, kLastSerial}) {
      const Ticket request(number, serial);
      EXPECT_TRUE(request.is_request());
      EXPECT_FALSE(request.is_foreign());
      EXPECT_EQ(request.number(), number);
      EXPECT_EQ(request.serial(), serial);
      EXPECT_EQ(request.is_last(), serial == kLastSerial);
      for (const std::uint32_t handle : {0U, 5U, Ticket::kHandles - 1}) {
        const Ticket reply = request.of_reply(handle);
        EXPECT_FALSE(reply.is_request());
        EXPECT_EQ(reply.handle(), handle);
        EXPECT_TRUE(reply.is_same_turn(request));
      }
    }
  }
  EXPECT_FALSE(Ticket(3, 4).is_same_turn(Ticket(3, 5)));
  EXPECT_FALSE(Ticket(3, 4).is_same_turn(Ticket(2, 4)));
  EXPECT_TRUE(Ticket(3, 5).is_same_turn(Ticket(3, 4).next()));
  EXPECT_TRUE(Ticket().is_foreign());
}

TEST(TicketBook, ANumberGoesOnWithItsSerialsUnderTheNextSlot) {
  TicketBook book(2);
  Ticket first = *book.issue(slot_number(0));
  EXPECT_EQ(book.holder_of(first), &slot_number(0));
  first = book.renew(first, slot_number(0));
  book.withdraw(first);
  EXPECT_EQ(book.holder_of(first), nullptr);
  const Ticket second = *book.issue(slot_number(1));
  EXPECT_EQ(second.number(), first.number());
  EXPECT_GT(second.serial(), first.serial());
  EXPECT_EQ(book.holder_of(second), &slot_number(1));
}

TEST(TicketBook, GivesOutAsManyNumbersAsThereAre) {
  TicketBook book(2);
  const Ticket first = *book.issue(slot_number(0));
  EXPECT_TRUE(book.issue(slot_number(1)));
  EXPECT_FALSE(book.issue(slot_number(2)));
  book.withdraw(first);
  EXPECT_TRUE(book.issue(slot_number(2)));
}

TEST(TicketBook, AWornNumberIsNotUsedAgain) {
  TicketBook book(3);
  const Ticket first = *book.issue(slot_number(0));
  const Ticket fresh = book.renew(Ticket(first.number(), kLastSerial), slot_number(0));
  EXPECT_NE(fresh.number(), first.number());
  EXPECT_EQ(book.holder_of(fresh), &slot_number(0));
  EXPECT_EQ(book.holder_of(first), nullptr);
  EXPECT_TRUE(book.issue(slot_number(1)));
  EXPECT_FALSE(book.issue(slot_number(2)));
  // With no number left its serials begin anew.
  EXPECT_EQ(book.renew(Ticket(fresh.number(), kLastSerial), slot_number(0)).serial(), 0U);
}

class TicketsTest : public testing::Test {
 protected:
  /// A route that has `body`, with rctx, req and a handle h of pool a.
  void load(const std::string& body) {
    const base::Result<void> done = rig_.load(R"(
local kept
function mcp_config_routes(pools)
  local fg = mcp.funcgen_new()
  local h = fg:new_handle(pools.a)
  fg:ready({ n = "test", f = function(rctx) return function(req) )" +
                                              body + R"( end end })
  mcp.attach(mcp.CMD_ANY_STORAGE, fg)
end)");
    ASSERT_TRUE(done) << done.error().text();
    rig_.pools["a"].answer_at_once = "HD t5\r\n";
  }
  std::string last_error() { return rig_.errors.empty() ? "none" : rig_.errors.back(); }

  WorkerRig rig_;
};

TEST_F(TicketsTest, ObjectsOfOneRequestAreEqualAndOthersAreNot) {
  load(R"(
    local first = rctx:enqueue_and_wait(req, h)
    local same = first == rctx:wait_handle(h) and req ~= first and kept ~= req
    kept = req
    return tostring(same) .. type(req) .. type(first) .. "\r\n")");
  EXPECT_EQ(rig_.send("mg a\r\n").bytes, "trueuserdatauserdata\r\n");
  EXPECT_EQ(rig_.send("mg a\r\n").bytes, "trueuserdatauserdata\r\n");
}

TEST_F(TicketsTest, AReplyThatIsKeptIsDeadForTheNextRequest) {
  load(R"(
    if kept then return tostring(kept:line()) end
    kept = rctx:enqueue_and_wait(req, h)
    return kept)");
  EXPECT_EQ(rig_.send("mg a\r\n").bytes, "HD t5\r\n");
  EXPECT_EQ(rig_.send("mg a\r\n").bytes, "SERVER_ERROR lua failure\r\n");
  EXPECT_NE(last_error().find("response: its request is over"), std::string::npos);
}

TEST_F(TicketsTest, AReplyThatIsKeptCannotBeReturned) {
  load(R"(
    if kept then return kept end
    kept = rctx:enqueue_and_wait(req, h)
    return kept)");
  EXPECT_EQ(rig_.send("mg a\r\n").bytes, "HD t5\r\n");
  EXPECT_EQ(rig_.send("mg a\r\n").bytes, "SERVER_ERROR bad response\r\n");
}

TEST_F(TicketsTest, ObjectsOfARequestUnderWayServeOthers) {
  load(R"(
    if req:key() == "read" then return kept:key() .. "\r\n" end
    kept = req
    return rctx:enqueue_and_wait(req, h))");
  rig_.pools["a"].answer_at_once.clear();
  const test::Outcome& first = rig_.send("mg first\r\n");
  EXPECT_EQ(rig_.send("mg read\r\n").bytes, "first\r\n");
  rig_.pools["a"].answer("EN\r\n");
  EXPECT_EQ(first.bytes, "EN\r\n");
  EXPECT_EQ(rig_.send("mg read\r\n").bytes, "SERVER_ERROR lua failure\r\n");
}

TEST_F(TicketsTest, KindsAreNotTakenForEachOther) {
  load(R"(
    local res = rctx:enqueue_and_wait(req, h)
    local _, first = pcall(req.hit, req)
    local _, second = pcall(res.key, res)
    local _, third = pcall(rctx.enqueue, rctx, res, h)
    local _, fourth = pcall(res.hit, 12)
    return first .. "|" .. second .. "|" .. third .. "|" .. fourth .. "\r\n")");
  EXPECT_EQ(rig_.send("mg a\r\n").bytes,
            "bad argument #1 to '?' (mcp.response expected, got mcp.request)|"
            "bad argument #1 to '?' (mcp.request expected, got mcp.response)|"
            "bad argument #2 to '?' (mcp.request expected, got mcp.response)|"
            "bad argument #1 to '?' (mcp.response expected, got number)\r\n");
}

TEST_F(TicketsTest, LightUserdataOfOthersIsNoTicket) {
  load(R"(
    local foreign = debug.upvalueid(function() return kept end, 1)
    local _, first = pcall(req.key, foreign)
    local _, second = pcall(req.hit, foreign)
    local _, third = pcall(req.close, foreign)
    return first .. "|" .. second .. "|" .. third .. "|" .. tostring(foreign):sub(1, 9) .. "\r\n")");
  EXPECT_EQ(rig_.send("mg a\r\n").bytes,
            "bad argument #1 to '?' (mcp.request expected, got light userdata)|"
            "bad argument #1 to '?' (mcp.response expected, got light userdata)|"
            "bad argument #1 to '?' (mcp.response expected, got light userdata)|userdata:\r\n");
}

TEST_F(TicketsTest, ShowThemselvesAndCanBeClosed) {
  load(R"(
    local res = rctx:enqueue_and_wait(req, h)
    local shown = tostring(req) .. " " .. tostring(res):match("^mcp.response: ")
    do local closed <close> = res end
    return shown .. tostring(res:raw_string()) .. "\r\n")");
  EXPECT_EQ(rig_.send("mg a v\r\n").bytes, "mg a v mcp.response: nil\r\n");
}

TEST_F(TicketsTest, CallbacksGetThemAlsoAfterTheAnswer) {
  load(R"(
    rctx:handle_set_cb(h, function(res, request)
      kept = (kept or "") .. request:key() .. (res:line() or "")
    end)
    if req:key() == "read" then return kept .. "\r\n" end
    rctx:enqueue(req, h)
    rctx:wait_cond(0)
    return "HD\r\n")");
  rig_.pools["a"].answer_at_once.clear();
  const test::Outcome& outcome = rig_.send("mg first\r\n");
  rig_.rig.run_until([&] { return outcome.is_done; });
  rig_.pools["a"].answer("HD t9\r\n");
  EXPECT_EQ(rig_.send("mg read\r\n").bytes, "firstt9\r\n");
}

TEST_F(TicketsTest, RequestsLeaveNoGarbage) {
  load("local res = rctx:enqueue_and_wait(req, h) if res:hit() then return res end");
  rig_.send("mg a\r\n");
  const std::size_t before = rig_.state.vm().used_bytes();
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(rig_.send("mg a\r\n").bytes, "HD t5\r\n");
  }
  EXPECT_EQ(rig_.state.vm().used_bytes(), before);
}

TEST_F(TicketsTest, AGeneratorHasAsManyHandlesAsTicketsCanName) {
  const auto with_handles = [](std::size_t count) {
    return "function mcp_config_routes(pools) local fg = mcp.funcgen_new() for i = 1, " +
           std::to_string(count) +
           " do fg:new_handle(pools.a) end fg:ready({ f = function(rctx) return function(req) "
           "return rctx:enqueue_and_wait(req, " +
           std::to_string(count - 1) + "):line() end end }) mcp.attach(mcp.CMD_MG, fg) end";
  };
  rig_.pools["a"].answer_at_once = "HD t5\r\n";
  ASSERT_TRUE(rig_.load(with_handles(kHandlesMax)));
  EXPECT_EQ(rig_.send("mg a\r\n").bytes, "t5");
  const base::Result<void> done = rig_.load(with_handles(kHandlesMax + 1));
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().text().find("too many handles"), std::string::npos);
}

}  // namespace
}  // namespace kvferry::lua
