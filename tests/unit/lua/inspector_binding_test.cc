#include <gtest/gtest.h>

#include "lua/boxes.h"
#include "tests/unit/lua/plain_state.h"

namespace kvferry::lua {
namespace {

/// A state in which show(...) gives its arguments, nil included, as one text with their number.
struct Scripted {
  Scripted() : state(define_request, define_reply, define_inspectors) {
    run("function show(...) local t = table.pack(...) for i = 1, t.n do t[i] = tostring(t[i]) end "
        "return t.n .. ': ' .. table.concat(t, ' ') end "
        "function mg(rest) return mcp.request('mg ' .. rest .. '\\r\\n') end");
  }
  std::string run(std::string_view code) { return state.run(code); }
  void answer(std::string_view line) {
    reply.reset();
    ASSERT_TRUE(reply.assign(line, "")) << line;
    push_reply(state.lua, reply);
    lua_setglobal(state.lua, "res");
  }

  route::RouteReply reply;
  PlainState state;
};

TEST(InspectorBinding, GivesAllResultsInTheOrderOfTheSteps) {
  Scripted script;
  script.run(
      "ins = mcp.req_inspector_new({ t = 'sepkey', sep = ':', pos = 2 }, { t = 'keyis', str = 'x' "
      "},"
      "{ t = 'keybegin', str = 'a' }, { t = 'hasflag', flag = 'v' }, "
      "{ t = 'flagtoken', flag = 'O' }, { t = 'flagint', flag = 't' }, "
      "{ t = 'flagis', flag = 'f', str = '7' }, { t = 'sepkey' })");
  EXPECT_EQ(script.run("return show(ins(mg('a:b/c v Oxy t5 f7')))"),
            "11: b/c false true true true xy true 5 true true a:b");
  EXPECT_EQ(script.run("return show(ins(mg('x')))"),
            "11: nil true false false false nil false nil false nil x");
  EXPECT_EQ(script.run("return show(ins(mg('x O')))"),
            "11: nil true false false true  false nil false nil x");
  EXPECT_EQ(script.run("return show(mcp.req_inspector_new()(mg('x')))"), "0: ");
}

TEST(InspectorBinding, LooksPiecesUpInMaps) {
  Scripted script;
  script.run(
      "ins = mcp.req_inspector_new("
      "{ t = 'sepkey', map = { foo = 'FOO', bar = 7, baz = true } }, "
      "{ t = 'keyis', str = 'baz' }, { t = 'sepkey', pos = 2, map = { x = 1.5 } })");
  EXPECT_EQ(script.run("return show(ins(mg('foo/x')))"), "3: FOO false 1.5");
  EXPECT_EQ(script.run("return show(ins(mg('bar/y')))"), "3: 7 false nil");
  EXPECT_EQ(script.run("return show(ins(mg('baz')))"), "3: true true nil");
  EXPECT_EQ(script.run("collectgarbage() return show(ins(mg('other/x')))"), "3: nil false 1.5");
}

TEST(InspectorBinding, ReadsReplies) {
  Scripted script;
  script.run(
      "ins = mcp.res_inspector_new({ t = 'hasflag', flag = 'W' }, "
      "{ t = 'flagtoken', flag = 'O' }, { t = 'flagint', flag = 't' }, "
      "{ t = 'flagis', flag = 'f', str = '7' }) "
      "quiet = mcp.res_inspector_new({ t = 'flagint', flag = 't' })");
  script.answer("HD Oabc t60 f7 W\r\n");
  EXPECT_EQ(script.run("return show(ins(res))"), "7: true true abc true 60 true true");
  script.answer("HD t-1 f8\r\n");
  EXPECT_EQ(script.run("return show(ins(res))"), "7: false false nil true -1 true false");
  script.answer("EN\r\n");
  EXPECT_EQ(script.run("return show(ins(res))"), "7: false false nil false nil false nil");
  script.answer("STORED\r\n");
  EXPECT_EQ(script.run("return show(ins(res))"),
            "error: inspector error: response is not meta protocol");
  EXPECT_EQ(script.run("return show(quiet(res))"), "2: false nil");
}

TEST(InspectorBinding, TellsWhatIsWrongWithAStep) {
  Scripted script;
  const struct {
    const char* call;
    const char* error;
  } table[] = {
      {"req_inspector_new({ t = 'nope' })",
       "inspector step 1: step incompatible with inspector type"},
      {"req_inspector_new({ t = 'hasflag', flag = 'v' }, { t = 'nope' })",
       "inspector step 2: step incompatible with inspector type"},
      {"res_inspector_new({ t = 'sepkey' })",
       "inspector step 1: step incompatible with inspector type"},
      {"res_inspector_new({ t = 'keyis', str = 'x' })",
       "inspector step 1: step incompatible with inspector type"},
      {"req_inspector_new({})", "inspector step 1: unknown step type"},
      {"req_inspector_new({ t = {} })", "inspector step 1: unknown step type"},
      {"req_inspector_new({ t = 'sepkey', sep = 'ab' })",
       "inspector step 1: separator must be one character"},
      {"req_inspector_new({ t = 'sepkey', sep = '' })",
       "inspector step 1: separator must be one character"},
      {"req_inspector_new({ t = 'sepkey', sep = {} })",
       "inspector step 1: separator must be one character"},
      {"req_inspector_new({ t = 'sepkey', pos = 'x' })",
       "inspector step 1: 'pos' must be an integer"},
      {"req_inspector_new({ t = 'sepkey', pos = 1.5 })",
       "inspector step 1: 'pos' must be an integer"},
      {"req_inspector_new({ t = 'sepkey', map = 5 })", "inspector step 1: 'map' must be a table"},
      {"req_inspector_new({ t = 'keyis' })", "inspector step 1: must provide 'str' argument"},
      {"req_inspector_new({ t = 'keybegin', str = '' })",
       "inspector step 1: 'str' must have nonzero length"},
      {"req_inspector_new({ t = 'hasflag' })", "inspector step 1: must provide 'flag' argument"},
      {"req_inspector_new({ t = 'hasflag', flag = 'vv' })",
       "inspector step 1: 'flag' must be a single character"},
      {"req_inspector_new({ t = 'hasflag', flag = '!' })",
       "inspect step 1: 'flag' must be alphanumeric"},
      {"req_inspector_new({ t = 'flagis', flag = 'v' })",
       "inspector step 1: must provide 'str' argument"},
  };
  for (const auto& row : table) {
    EXPECT_EQ(script.run(std::string("mcp.") + row.call), std::string("error: ") + row.error)
        << row.call;
  }
  EXPECT_EQ(script.run("mcp.req_inspector_new(5)").substr(0, 19), "error: bad argument");
  EXPECT_EQ(script.run("local t = {} for i = 1, 251 do t[i] = { t = 'sepkey' } end "
                       "mcp.req_inspector_new(table.unpack(t))"),
            "error: inspector ran out of stack space for results");
}

TEST(InspectorBinding, RefusesOtherObjects) {
  Scripted script;
  script.answer("HD\r\n");
  script.run(
      "ins = mcp.req_inspector_new({ t = 'sepkey' }) "
      "rins = mcp.res_inspector_new({ t = 'flagint', flag = 't' })");
  for (const char* const call : {"ins(5)", "ins()", "ins(nil)", "ins(res)", "ins(ins)",
                                 "ins(io.stdout)", "rins(mg('k'))", "rins('HD')"}) {
    EXPECT_NE(script.run(call).find("invalid argument to inspector object"), std::string::npos)
        << call;
  }
  EXPECT_EQ(script.run("getmetatable(ins).__call(5, mg('k'))").substr(0, 19),
            "error: bad argument");
  EXPECT_EQ(script.run("getmetatable(ins).__gc(ins) getmetatable(ins).__gc(ins) ins(mg('k'))")
                .substr(0, 19),
            "error: bad argument");
}

TEST(InspectorBinding, SurvivesAStateWithoutMemory) {
  constexpr const char* kScript =
      "local ins = mcp.req_inspector_new({ t = 'sepkey', map = { a = 'mapped' } }, "
      "{ t = 'sepkey', pos = 2 }, { t = 'flagtoken', flag = 'O' }) "
      "return show(ins(mg('a/' .. ('b'):rep(50) .. ' O' .. ('o'):rep(50))))";
  Scripted script;
  const std::string wanted = script.run(kScript);
  EXPECT_EQ(wanted.substr(0, 10), "4: mapped ");
  int n = 1;
  while (n < 1000 && script.state.run_short_of_memory(kScript, n) != wanted) {
    ++n;
  }
  EXPECT_GT(n, 5);
  EXPECT_LT(n, 1000);
}

}  // namespace
}  // namespace kvferry::lua
