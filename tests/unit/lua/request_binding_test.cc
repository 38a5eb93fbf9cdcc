#include <gtest/gtest.h>

#include "lua/boxes.h"
#include "lua/constants.h"
#include "protocol/memcache/request_parser.h"
#include "tests/unit/lua/plain_state.h"

namespace kvferry::lua {
namespace {

/// A state with a client's request in the global `req`.
struct Scripted {
  explicit Scripted(std::string_view text)
      : bytes(text), state(define_constants, define_request, define_reply) {
    memcache::RequestParser parser{memcache::ParserLimits{}};
    const auto parsed = parser.parse(bytes);
    EXPECT_TRUE(parsed.is_done()) << bytes;
    request.borrow(parsed.value());
    box = push_request(state.lua, request);
    lua_setglobal(state.lua, "req");
  }
  /// Puts an answer into the global `res`.
  void answer(std::string_view line, std::string_view value = {}) {
    ASSERT_TRUE(reply.assign(line, value)) << line;
    push_reply(state.lua, reply);
    lua_setglobal(state.lua, "res");
  }
  std::string run(std::string_view code) { return state.run(code); }

  std::string bytes;
  route::RouteRequest request;
  route::RouteReply reply;
  PlainState state;
  RequestBox* box = nullptr;
};

TEST(RequestBinding, ReadsARequest) {
  Scripted get("mg foo v t\r\n");
  EXPECT_EQ(get.run("return req:command(), req:key(), req:ntokens(), req:raw_line()"),
            "1 foo 4 mg foo v t");
  EXPECT_EQ(get.run("return req:raw_value(), req:token(2), req:token(99), req:token()"),
            "nil foo nil nil");
  EXPECT_EQ(get.run("return req:token(0), req:token(-1), req:token(nil), tostring(req)"),
            "nil nil nil mg foo v t");
  Scripted set("set baz 1 -2 3\r\nabc\r\n");
  EXPECT_EQ(set.run("return req:command(), req:key(), req:ntokens(), req:raw_value()"),
            "9 baz 5 abc\r\n");
  EXPECT_EQ(set.run("local t = {} for i = 1, 6 do t[i] = tostring(req:token_int(i)) end "
                    "return table.concat(t, ' ')"),
            "nil nil 1 -2 3 nil");
  Scripted big("incr k 9223372036854775808\r\n");
  EXPECT_EQ(big.run("return req:token_int(3), req:token_int(), req:token_int(-1)"), "nil nil nil");
  Scripted line("incr 1x +5\n");
  EXPECT_EQ(line.run("return req:token_int(2), req:token_int(3), req:raw_line()"),
            "nil nil incr 1x +5");
  Scripted none("mn\r\n");
  EXPECT_EQ(none.run("return req:command(), req:ntokens(), '[' .. req:key() .. ']', req:token(1)"),
            "4 0 [] nil");
}

TEST(RequestBinding, ReadsFlags) {
  Scripted get("mg foo v O123 N30 Tx\r\n");
  EXPECT_EQ(get.run("return req:has_flag('v'), req:has_flag('t'), req:has_flag('O')"),
            "true false true");
  EXPECT_EQ(get.run("return req:flag_token('O')"), "true 123");
  EXPECT_EQ(get.run("return req:flag_token('v')"), "true");
  EXPECT_EQ(get.run("return req:flag_token('z')"), "false");
  EXPECT_EQ(get.run("return req:flag_token('O', nil)"), "true 123");
  EXPECT_EQ(get.run("return req:flag_token_int('N')"), "true 30");
  EXPECT_EQ(get.run("return req:flag_token_int('T')"), "true");
  EXPECT_EQ(get.run("return req:flag_token_int('z')"), "false");
  Scripted classic("get t\r\n");
  EXPECT_EQ(classic.run("return req:has_flag('t'), req:flag_add('v'), req:flag_set('v'), "
                        "req:flag_del('t'), req:flag_replace('t', 'v'), req:flag_token('t', 'x')"),
            "false false false false false false");
  EXPECT_EQ(classic.run("return req:raw_line()"), "get t");
}

TEST(RequestBinding, EditsFlags) {
  Scripted add("mg foo v\r\n");
  EXPECT_EQ(add.run("return req:flag_add('k'), req:flag_add('v'), req:flag_add('O', 'abc'), "
                    "req:flag_add('T', 60), req:flag_add('N', '-1'), req:flag_add('Y', 7.0)"),
            "true false true true true true");
  EXPECT_EQ(add.run("return req:raw_line()"), "mg foo v k Oabc T60 N-1 Y7.0");

  Scripted set("mg foo v Oold t\r\n");
  EXPECT_EQ(set.run("return req:flag_set('T', 90), req:flag_set('O', 'new'), req:flag_set('k'), "
                    "req:flag_set('v', nil)"),
            "true true true true");
  EXPECT_EQ(set.run("return req:raw_line()"), "mg foo v Onew t T90 k");

  Scripted replace("mg foo T30 v Oq\r\n");
  EXPECT_EQ(replace.run("return req:flag_replace('T', 'N', 50), req:flag_replace('z', 'k'), "
                        "req:flag_replace('v', 's')"),
            "true true true");
  EXPECT_EQ(replace.run("return req:raw_line()"), "mg foo N50 s Oq k");
  EXPECT_EQ(replace.run("return req:flag_replace('z', 'k', 1), req:raw_line()"),
            "true mg foo N50 s Oq k1");

  Scripted token("mg foo v N30 Oxx t\r\n");
  EXPECT_EQ(token.run("local a, b = req:flag_token('N', 'N100') return a, b, "
                      "req:flag_token('T', 'T5'), (req:flag_token('O', ''))"),
            "true 30 false true");
  EXPECT_EQ(token.run("return req:flag_del('t'), req:flag_del('t'), req:raw_line()"),
            "true false mg foo v N100");
}

TEST(RequestBinding, RefusesFlagsAndTextsThatAreNone) {
  Scripted client("mg foo v\r\n");
  const struct {
    const char* call;
    const char* error;
  } table[] = {
      {"req:has_flag('')", "has_flag(): meta flag must be a single character"},
      {"req:has_flag('vv')", "has_flag(): meta flag must be a single character"},
      {"req:has_flag('!')", "has_flag(): invalid flag, must be A-Z,a-z"},
      {"req:flag_add('kk')", "request: meta flag must be a single character"},
      {"req:flag_add('!')", "request: invalid flag, must be A-Z,a-z"},
      {"req:flag_set('')", "request: meta flag must be a single character"},
      {"req:flag_add('T', {})", "request: invalid flag argument"},
      {"req:flag_add('T', true)", "request: invalid flag argument"},
      {"req:flag_del('xyz')", "request: meta flag must be a single character"},
      {"req:flag_replace('v', 'kk')", "request: meta flag must be a single character"},
      {"req:flag_token('\\0')", "request: invalid flag, must be A-Z,a-z"},
  };
  for (const auto& row : table) {
    EXPECT_EQ(client.run(row.call), std::string("error: ") + row.error) << row.call;
  }
  EXPECT_EQ(client.run("return req:raw_line()"), "mg foo v");
  EXPECT_EQ(client.run("return req:flag_add('O', ('o'):rep(3000)), req:flag_set('v', 'a\\nb'), "
                       "req:flag_token('v', 'v\\r\\nmn')"),
            "false false false");
  EXPECT_EQ(client.run("return req:raw_line()"), "mg foo v");
}

TEST(RequestBinding, EditsTokens) {
  Scripted client("set k 5 0 3\r\nabc\r\n");
  EXPECT_EQ(client.run("return req:token(3, '99')"), "");
  EXPECT_EQ(client.run("return req:token(4, 1000)"), "");
  EXPECT_EQ(client.run("return req:raw_line()"), "set k 99 1000 3");
  EXPECT_EQ(client.run("return req:token(9, 'x')"), "nil");
  for (const char* const call : {"req:token(5, '4')", "req:token(1, 'bogus')", "req:token(3, '')",
                                 "req:token(2, ('k'):rep(4000))", "req:token(2, 'a\\nb')"}) {
    EXPECT_EQ(client.run(call), "error: token(): request malformed after edit") << call;
  }
  EXPECT_EQ(client.run("return req:raw_line() .. req:raw_value()"), "set k 99 1000 3abc\r\n");
  Scripted get("mg k v t\r\n");
  EXPECT_EQ(get.run("req:token(3, '') return req:raw_line()"), "mg k t");
}

TEST(RequestBinding, TrimsKeys) {
  Scripted client("mg left/bar-end v\r\n");
  EXPECT_EQ(client.run("req:ltrimkey(5) req:rtrimkey(4) return req:key(), req:raw_line()"),
            "bar mg      bar     v");
  for (const char* const count : {"3", "4", "-1", "math.maxinteger", "math.mininteger"}) {
    const std::string argument = std::string("(") + count + ")";
    EXPECT_EQ(client.run("req:ltrimkey" + argument), "error: ltrimkey cannot zero out key");
    EXPECT_EQ(client.run("req:rtrimkey" + argument), "error: rtrimkey cannot zero out key");
  }
  EXPECT_EQ(client.run("req:ltrimkey(0) return req:key()"), "bar");
}

TEST(RequestBinding, MakesRequests) {
  Scripted client("set k 0 0 2\r\nhi\r\n");
  EXPECT_EQ(client.run("local r = mcp.request('mg foo v\\r\\n') return r:key(), r:command(), "
                       "r:raw_value(), tostring(r)"),
            "foo 1 nil mg foo v");
  EXPECT_EQ(client.run("local r = mcp.request('ms made 5 T30\\r\\n', 'hello\\r\\n') "
                       "return r:raw_line() .. '|' .. r:raw_value()"),
            "ms made 5 T30|hello\r\n");
  EXPECT_EQ(client.run("local r = mcp.request('ms made 2\\r\\n', req) return r:raw_value()"),
            "hi\r\n");
  client.answer("VA 3 t1\r\n", "abc\r\n");
  EXPECT_EQ(client.run("local r = mcp.request('ms made 3\\r\\n', res) return r:raw_value()"),
            "abc\r\n");
  EXPECT_EQ(client.run("local r = mcp.request('ms made 3\\r\\n', res) r:flag_add('c') "
                       "r:token(2, 'other') return r:raw_line() .. '|' .. r:raw_value()"),
            "ms other 3 c|abc\r\n");
  EXPECT_EQ(client.run("return mcp.request('mg foo v\\r\\n', nil):key()"), "foo");
}

TEST(RequestBinding, RefusesToMakeWhatIsNoRequest) {
  Scripted client("mg foo v\r\n");
  const struct {
    const char* call;
    const char* error;
  } table[] = {
      {"mcp.request('mg foo v')", "request must end with \r\n"},
      {"mcp.request('mg foo v\\n')", "request must end with \r\n"},
      {"mcp.request('')", "request must end with \r\n"},
      {"mcp.request('bogus foo\\r\\n')", "failed to parse request"},
      {"mcp.request('set foo 0 0\\r\\n')", "failed to parse request"},
      {"mcp.request('mg a\\r\\nmg b\\r\\n')", "failed to parse request"},
      {"mcp.request('ms foo 2\\r\\n', 'hi')", "value passed to mcp.request must end with \\r\\n"},
      {"mcp.request('mg ' .. ('k'):rep(3000) .. '\\r\\n')", "request length too long"},
  };
  for (const auto& row : table) {
    EXPECT_EQ(client.run(row.call), std::string("error: ") + row.error) << row.call;
  }
  for (const char* const call : {"mcp.request()", "mcp.request({})", "mcp.request(nil, 'x')",
                                 "mcp.request('mg k\\r\\n', {})", "mcp.request('mg k\\r\\n', true)",
                                 "mcp.request('mg k\\r\\n', io.stdout)", "mcp.request(req)"}) {
    EXPECT_EQ(client.run(call).substr(0, 19), "error: bad argument") << call;
  }
}

TEST(RequestBinding, TellsTheCollectorWhatAValueTakes) {
  Scripted client("mg foo v\r\n");
  EXPECT_EQ(client.run("collectgarbage() collectgarbage('stop') "
                       "local value = ('x'):rep(1 << 20) .. '\\r\\n' "
                       "local before = collectgarbage('count') "
                       "local r = mcp.request('set k 0 0 1048576\\r\\n', value) "
                       "local grown = collectgarbage('count') - before "
                       "return grown >= 1024 and grown < 1100"),
            "true");
}

TEST(RequestBinding, CutsOffWhatIsOver) {
  Scripted client("mg foo v\r\n");
  client.answer("HD\r\n");
  client.run("kept = mcp.request('mg made\\r\\n') getmetatable(kept).__gc(kept)");
  client.box->request = nullptr;
  for (const char* const object : {"req", "kept"}) {
    for (const char* const call :
         {"command()", "key()", "ltrimkey(1)", "rtrimkey(1)", "raw_line()", "raw_value()",
          "ntokens()", "token(1)", "token(1, 'x')", "token_int(1)", "has_flag('v')",
          "flag_token('v')", "flag_token_int('v')", "flag_add('v')", "flag_set('v')",
          "flag_replace('v', 't')", "flag_del('v')", "match_res(res)"}) {
      EXPECT_EQ(client.run(std::string(object) + ":" + call).substr(0, 23),
                "error: request is over:")
          << call;
    }
    EXPECT_EQ(client.run(std::string("tostring(") + object + ")").substr(0, 23),
              "error: request is over:");
    lua_getglobal(client.state.lua, object);
    EXPECT_EQ(request_at(client.state.lua, -1), nullptr);
  }
}

TEST(RequestBinding, RefusesOtherObjects) {
  Scripted client("mg foo v\r\n");
  client.answer("HD\r\n");
  for (const char* const method :
       {"command", "key", "ltrimkey", "rtrimkey", "raw_line", "raw_value", "ntokens", "token",
        "token_int", "has_flag", "flag_token", "flag_token_int", "flag_add", "flag_set",
        "flag_replace", "flag_del", "match_res"}) {
    for (const char* const object : {"", "nil", "5", "'text'", "{}", "io.stdout", "res", "print"}) {
      const std::string call = std::string("req.") + method + "(" + object + ")";
      EXPECT_EQ(client.run(call).substr(0, 22), "error: bad argument #1") << call;
    }
  }
  for (const char* const call :
       {"req:ltrimkey()", "req:ltrimkey('x')", "req:token('x')", "req:token(2, {})",
        "req:token_int({})", "req:has_flag()", "req:flag_token('v', {})", "req:flag_add()",
        "req:match_res()", "req:match_res(req)", "req:match_res('HD')"}) {
    EXPECT_EQ(client.run(call).substr(0, 19), "error: bad argument") << call;
  }
}

TEST(RequestBinding, TellsWhetherAReplyIsAnAnswerToIt) {
  const struct {
    const char* request;
    const char* line;
    const char* result;
  } table[] = {
      {"mg foo k\r\n", "HD kfoo\r\n", "true nil"},
      {"mg foo k\r\n", "HD kbar\r\n", "false key in response does not match request key"},
      {"mg foo k\r\n", "HD k\r\n", "false key in response does not match request key"},
      {"mg foo O1\r\n", "HD O1\r\n", "true nil"},
      {"mg foo O1\r\n", "HD\r\n", "false opaque in request but not in response"},
      {"mg foo O1\r\n", "SERVER_ERROR x\r\n", "false opaque in request but not in response"},
      {"mg foo O1\r\n", "HD O2\r\n", "false request opaque does not match response opaque"},
      {"mg foo O1\r\n", "HD O\r\n", "false request opaque does not match response opaque"},
      {"mg foo k O1\r\n", "HD kfoo\r\n", "false opaque in request but not in response"},
      {"mg foo k O1\r\n", "HD kfoo O1\r\n", "true nil"},
      {"mg foo k O1\r\n", "HD O1 kbar\r\n", "false key in response does not match request key"},
      {"mg foo O\r\n", "HD O\r\n", "false nil"},
      {"mg foo\r\n", "HD\r\n", "false nil"},
      {"mg foo\r\n", "HD O1\r\n", "false nil"},
      {"get foo\r\n", "END\r\n", "false nil"},
  };
  for (const auto& row : table) {
    Scripted client(row.request);
    client.answer(row.line);
    EXPECT_EQ(client.run("return req:match_res(res)"), row.result) << row.request << row.line;
  }
  Scripted client("mg foo O1\r\n");
  client.answer("HD\r\n");
  client.reply.fail();
  EXPECT_EQ(client.run("return req:match_res(res)"), "false failed to parse response");
}

TEST(RequestBinding, SurvivesAStateWithoutMemory) {
  constexpr const char* kScript =
      "local r = mcp.request('ms foo 5 T1\\r\\n', 'hello\\r\\n') r:flag_add('k') r:token(2, 'bar') "
      "return r:key(), r:raw_line(), r:raw_value(), r:flag_token('T'), tostring(r), "
      "pcall(r.flag_add, r, '!')";
  Scripted client("mg foo v\r\n");
  const std::string wanted = client.run(kScript);
  EXPECT_EQ(wanted.substr(0, 3), "bar");
  int n = 1;
  while (n < 1000 && client.state.run_short_of_memory(kScript, n) != wanted) {
    ++n;
  }
  EXPECT_GT(n, 5);
  EXPECT_LT(n, 1000);
}

}  // namespace
}  // namespace kvferry::lua
