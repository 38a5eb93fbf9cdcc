#include <gtest/gtest.h>

#include "lua/boxes.h"
#include "tests/unit/lua/plain_state.h"

namespace kvferry::lua {
namespace {

/// A state with an answer in the global `res`.
struct Scripted {
  explicit Scripted(std::string_view line, std::string_view value = {})
      : state(define_request, define_reply) {
    EXPECT_TRUE(reply.assign(line, value)) << line;
    box = push_reply(state.lua, reply);
    lua_setglobal(state.lua, "res");
  }
  std::string run(std::string_view code) { return state.run(code); }

  route::RouteReply reply;
  PlainState state;
  ReplyBox* box = nullptr;
};

constexpr const char* kReadAll =
    "return res:ok(), res:hit(), res:code(), res:vlen(), res:line(), res:raw_string(), "
    "math.type(res:elapsed())";

TEST(ReplyBinding, ReadsAReply) {
  const struct {
    const char* line;
    const char* value;
    const char* read;
  } table[] = {
      {"VA 5 t30 Oabc\r\n", "hello\r\n",
       "true true 15 5 t30 Oabc VA 5 t30 Oabc\r\nhello\r\n integer"},
      {"VA 0\r\n", "\r\n", "true true 15 0 nil VA 0\r\n\r\n integer"},
      {"EN\r\n", "", "true false 17 0 nil EN\r\n integer"},
      {"NF O1\r\n", "", "true true 13 0 O1 NF O1\r\n integer"},
      {"STORED\r\n", "", "true true 8 0 nil STORED\r\n integer"},
      {"SERVER_ERROR odd\r\n", "", "false false 23 0 nil SERVER_ERROR odd\r\n integer"},
  };
  for (const auto& row : table) {
    Scripted script(row.line, row.value);
    EXPECT_EQ(script.run(kReadAll), row.read);
  }
  Scripted failed("HD\r\n");
  failed.reply.fail();
  failed.reply.elapsed = base::Micros(1234);
  EXPECT_EQ(failed.run(kReadAll), "false false 23 0 nil nil integer");
  EXPECT_EQ(failed.run("return res:elapsed()"), "1234");
}

TEST(ReplyBinding, BlanksFlags) {
  Scripted script("VA 5 t30 Oabc kfoo\r\n", "hello\r\n");
  EXPECT_EQ(script.run("return res:flag_blank('O'), res:flag_blank('z'), res:flag_blank('O'), "
                       "res:raw_string()"),
            "true false false VA 5 t30      kfoo\r\nhello\r\n");
  EXPECT_EQ(script.run("res:flag_blank('kk')"),
            "error: request: meta flag must be a single character");
  EXPECT_EQ(script.run("res:flag_blank('!')"), "error: request: invalid flag, must be A-Z,a-z");
  EXPECT_EQ(script.run("res:flag_blank()").substr(0, 19), "error: bad argument");
}

TEST(ReplyBinding, FreesItsBytesWhenClosed) {
  Scripted script("VA 5 t30\r\n", "hello\r\n");
  EXPECT_EQ(script.run("res:close() res:close() return res:raw_string(), res:vlen(), res:line()"),
            "nil 0 nil");
  EXPECT_TRUE(script.reply.is_closed());
  Scripted variable("HD\r\n");
  EXPECT_EQ(variable.run("do local r <close> = res end return res:raw_string()"), "nil");
  EXPECT_TRUE(variable.reply.is_closed());
}

TEST(ReplyBinding, CutsOffWhatIsOver) {
  Scripted script("HD t1\r\n");
  push_owned_reply(script.state.lua).copy_from(script.reply);
  lua_setglobal(script.state.lua, "kept");
  EXPECT_EQ(script.run("return kept:line()"), "t1");
  script.run("getmetatable(kept).__gc(kept)");
  script.box->reply = nullptr;
  for (const char* const object : {"res", "kept"}) {
    for (const char* const call : {"ok()", "hit()", "code()", "vlen()", "line()", "raw_string()",
                                   "flag_blank('t')", "elapsed()"}) {
      EXPECT_EQ(script.run(std::string(object) + ":" + call).substr(0, 36),
                "error: response: its request is over")
          << call;
    }
    EXPECT_EQ(script.run(std::string(object) + ":close()"), "") << "there is nothing to free";
  }
}

TEST(ReplyBinding, RefusesOtherObjects) {
  Scripted script("HD t1\r\n");
  script.run("req = mcp.request('mg k\\r\\n')");
  for (const char* const method :
       {"ok", "hit", "code", "vlen", "line", "raw_string", "flag_blank", "elapsed", "close"}) {
    for (const char* const object : {"", "nil", "5", "'text'", "{}", "io.stdout", "req", "print"}) {
      const std::string call = std::string("res.") + method + "(" + object + ")";
      EXPECT_EQ(script.run(call).substr(0, 22), "error: bad argument #1") << call;
    }
  }
}

TEST(ReplyBinding, FindsRepliesAmongOtherValues) {
  PlainState state(define_request, define_reply);
  lua_pushinteger(state.lua, 5);
  EXPECT_EQ(reply_at(state.lua, -1), nullptr);
  EXPECT_EQ(reply_at(state.lua, 7), nullptr);
  EXPECT_EQ(request_at(state.lua, -1), nullptr);
  route::RouteReply& owned = push_owned_reply(state.lua);
  EXPECT_EQ(reply_at(state.lua, -1), &owned);
  EXPECT_EQ(request_at(state.lua, -1), nullptr);
  lua_settop(state.lua, 0);
}

}  // namespace
}  // namespace kvferry::lua
