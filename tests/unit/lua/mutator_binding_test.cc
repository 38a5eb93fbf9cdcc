#include <gtest/gtest.h>

#include "lua/boxes.h"
#include "tests/unit/lua/plain_state.h"

namespace kvferry::lua {
namespace {

/// A state with the empty objects `dst` (a request) and `res` (a reply).
struct Scripted {
  Scripted() : state(define_request, define_reply, define_mutators) {
    request_box = push_request(state.lua, request);
    lua_setglobal(state.lua, "dst");
    push_reply(state.lua, reply);
    lua_setglobal(state.lua, "res");
    run("function req(line, value) return mcp.request(line .. '\\r\\n', value) end");
  }
  std::string run(std::string_view code) { return state.run(code); }
  /// What `code` leaves in `dst`.
  std::string request_after(std::string_view code) {
    request.reset();
    const std::string results = run(code);
    EXPECT_EQ(results, "") << code;
    return std::string(request.line_text()) + "|" + std::string(request.value_with_end());
  }
  std::string reply_after(std::string_view code) {
    reply.reset();
    const std::string results = run(code);
    EXPECT_EQ(results, "") << code;
    return std::string(reply.bytes());
  }

  route::RouteRequest request;
  route::RouteReply reply;
  PlainState state;
  RequestBox* request_box = nullptr;
};

TEST(MutatorBinding, WritesRequests) {
  Scripted script;
  script.run(
      "mut = mcp.req_mutator_new({ t = 'cmdset', cmd = 'ms' }, { t = 'keycopy', idx = 1 }, "
      "{ t = 'valcopy', idx = 2 }, { t = 'flagset', flag = 'T', val = 30 }, "
      "{ t = 'flagset', flag = 'c' }, { t = 'flagcopy', flag = 'O', idx = 1 })");
  EXPECT_EQ(script.request_after("return mut(dst, req('mg k Oab'), 'val\\r\\n')"),
            "ms k 3 T30 c Oab|val\r\n");
  EXPECT_EQ(script.request_after("return mut(dst, req('mg k'), req('ms x 2', 'hi\\r\\n'))"),
            "ms k 2 T30 c|hi\r\n");
  script.run(
      "mut = mcp.req_mutator_new({ t = 'cmdcopy', idx = 1 }, { t = 'keyset', val = 5 }, "
      "{ t = 'flagcopy', flag = 'N', idx = 2 }, { t = 'flagcopyall', idx = 1 })");
  EXPECT_EQ(script.request_after("return mut(dst, req('md k I q'), 7)"), "md 5 N7 I q|");
  EXPECT_EQ(script.request_after("return mut(dst, req('md k'), 7.0)"), "md 5 N7.0|");
  EXPECT_EQ(script.request_after("return mut(dst, req('mg k v'), true)"), "mg 5 N v|");
  EXPECT_EQ(script.request_after("return mut(dst, req('mg k v'), false)"), "mg 5 v|");
  EXPECT_EQ(script.request_after("return mut(dst, req('mg k v'))"), "mg 5 v|");
  EXPECT_EQ(script.request_after("mut(dst, req('mg k v')) return mut(dst, dst, 1)"), "mg 5 N1 v|");
}

TEST(MutatorBinding, WritesReplies) {
  Scripted script;
  script.run(
      "mut = mcp.res_mutator_new({ t = 'rescodeset', val = 'VA' }, "
      "{ t = 'valcopy', idx = 1 }, { t = 'flagset', flag = 't', val = '9' }, "
      "{ t = 'flagcopy', flag = 'O', idx = 2 })");
  EXPECT_EQ(script.reply_after("return mut(res, 'hello\\r\\n', req('mg k Oxyz'))"),
            "VA 5 t9 Oxyz\r\nhello\r\n");
  EXPECT_EQ(script.run("return res:ok(), res:hit(), res:code(), res:vlen(), res:line()"),
            "true true 15 5 t9 Oxyz");
  EXPECT_EQ(script.reply_after("return mcp.res_mutator_new({ t = 'resnull', idx = 1 })"
                               "(res, req('get k'))"),
            "END\r\n");
  EXPECT_EQ(script.reply_after("return mcp.res_mutator_new({ t = 'reserr', code = 'server', "
                               "msg = 'no luck' })(res)"),
            "SERVER_ERROR no luck\r\n");
  EXPECT_EQ(script.reply_after("return mcp.res_mutator_new({ t = 'reserr', code = 'error' })(res)"),
            "ERROR\r\n");
  EXPECT_EQ(script.reply_after("return mcp.res_mutator_new({ t = 'rescodecopy', idx = 1 })"
                               "(res, 'HD')"),
            "HD\r\n");
}

TEST(MutatorBinding, GivesFalseForArgumentsThatItCannotUse) {
  Scripted script;
  script.run(
      "mut = mcp.req_mutator_new({ t = 'cmdset', cmd = 'ms' }, { t = 'keyset', val = 'k' }, "
      "{ t = 'valcopy', idx = 1 })");
  for (const char* const argument : {"req('mg foo')", "'no line end'", "5", "nil", "{}", "print",
                                     "io.stdout", "true", "mut", "res"}) {
    EXPECT_EQ(script.run(std::string("return mut(dst, ") + argument + ")"), "false") << argument;
  }
  EXPECT_EQ(script.run("return mut(dst)"), "false");
  EXPECT_EQ(script.run("return mut(dst, 'fine\\r\\n')"), "");
}

TEST(MutatorBinding, WritesNothingTwice) {
  Scripted script;
  script.run(
      "mut = mcp.req_mutator_new({ t = 'cmdset', cmd = 'ms' }, { t = 'keyset', val = 'k' }, "
      "{ t = 'valcopy', idx = 1 }) "
      "rmut = mcp.res_mutator_new({ t = 'rescodeset', val = 'HD' })");
  EXPECT_EQ(script.run("mut(dst, 'a\\r\\n') mut(dst, 'b\\r\\n')"),
            "error: mutator: request has already been rendered");
  EXPECT_EQ(script.run("rmut(res) rmut(res)"), "error: mutator: result has already been rendered");
  script.reply.reset();
  EXPECT_EQ(script.run("res:close() rmut(res)"),
            "error: mutator: result has already been rendered");
}

TEST(MutatorBinding, RaisesWhenTheLineIsNone) {
  Scripted script;
  EXPECT_EQ(script.run("mcp.req_mutator_new({ t = 'cmdset', cmd = 'nope' })(dst)"),
            "error: mutator: failed to parse new request");
  EXPECT_EQ(script.run("mcp.req_mutator_new({ t = 'cmdset', cmd = 'mg' }, "
                       "{ t = 'keyset', val = ('k'):rep(1 << 20) })(dst)"),
            "error: mutator: new request is too long");
  EXPECT_EQ(script.run("mcp.req_mutator_new({ t = 'cmdset', cmd = 'mg' }, "
                       "{ t = 'keycopy', idx = 1 })(dst, ('k'):rep(1 << 20))"),
            "error: mutator: new request is too long");
  EXPECT_EQ(script.run("mcp.res_mutator_new({ t = 'rescodeset', val = 'rubbish' })(res)"),
            "error: mutator: failed to parse new result");
  EXPECT_EQ(script.run("mcp.res_mutator_new({ t = 'rescodeset', val = ('k'):rep(9999) })(res)"),
            "error: mutator: failed to parse new result");
}

TEST(MutatorBinding, TellsWhatIsWrongWithAStep) {
  Scripted script;
  const struct {
    const char* steps;
    const char* error;
  } table[] = {
      {"req_mutator_new()", "mutator failed to initialize, no steps given"},
      {"req_mutator_new({ t = 'rescodeset', val = 'HD' })",
       "mutator step 1: step incompatible with mutator type"},
      {"res_mutator_new({ t = 'keycopy', idx = 1 })",
       "mutator step 1: step incompatible with mutator type"},
      {"res_mutator_new({ t = 'nope' })", "mutator step 1: step incompatible with mutator type"},
      {"res_mutator_new({})", "mutator step 1: unknown step type"},
      {"req_mutator_new({ t = 'cmdset' })", "mutator step 1: must provide 'cmd' argument"},
      {"req_mutator_new({ t = 'cmdset', cmd = ('m'):rep(21) })", "mutator step 1: 'cmd' too long"},
      {"req_mutator_new({ t = 'cmdset', cmd = 'mg' }, { t = 'keyset' })",
       "mutator step 2: must provide 'val' argument"},
      {"req_mutator_new({ t = 'keyset', val = '' })",
       "mutator step 1: 'val' must have nonzero length"},
      {"req_mutator_new({ t = 'keycopy' })", "mutator step 1: must provide 'idx' argument"},
      {"req_mutator_new({ t = 'keycopy', idx = 'x' })",
       "mutator step 1: must provide 'idx' argument as an integer"},
      {"req_mutator_new({ t = 'keycopy', idx = 0 })",
       "mutator step 1: 'idx' argument must be greater than 0"},
      {"req_mutator_new({ t = 'keycopy', idx = 1 << 40 })",
       "mutator step 1: 'idx' argument is too large"},
      {"req_mutator_new({ t = 'flagset' })", "mutator step 1: must provide 'flag' argument"},
      {"req_mutator_new({ t = 'flagset', flag = 'vv' })",
       "mutator step 1: 'flag' must be a single character"},
      {"req_mutator_new({ t = 'flagset', flag = '!' })",
       "mutator step 1: 'flag' must be alphanumeric"},
      {"req_mutator_new({ t = 'flagcopy', flag = '!', idx = 1 })",
       "mutator step 1: 'flag' must be alphanumeric"},
      {"req_mutator_new({ t = 'flagset', flag = 'T', val = {} })",
       "mutator step 1: unsupported type for 'val'"},
      {"res_mutator_new({ t = 'reserr', code = 'odd', msg = 'x' })",
       "mutator step 1: code must be 'error', server', or 'client'"},
      {"res_mutator_new({ t = 'reserr', code = 'server', msg = '' })",
       "mutator step 1: 'msg' must be a nonzero length string"},
      {"res_mutator_new({ t = 'reserr', msg = 'x' })",
       "mutator step 1: must provide 'code' argument"},
  };
  for (const auto& row : table) {
    EXPECT_EQ(script.run(std::string("mcp.") + row.steps), std::string("error: ") + row.error)
        << row.steps;
  }
  EXPECT_EQ(script.run("mcp.req_mutator_new('cmdset')").substr(0, 19), "error: bad argument");
}

TEST(MutatorBinding, RefusesOtherObjects) {
  Scripted script;
  script.run(
      "mut = mcp.req_mutator_new({ t = 'cmdset', cmd = 'mn' }) "
      "rmut = mcp.res_mutator_new({ t = 'rescodeset', val = 'HD' })");
  for (const char* const call : {"mut()", "mut(nil)", "mut(res)", "mut('mg')", "mut(mut)",
                                 "rmut(dst)", "rmut(5)", "rmut(io.stdout)"}) {
    EXPECT_NE(script.run(call).find("invalid argument to mutator object"), std::string::npos)
        << call;
  }
  EXPECT_EQ(script.run("getmetatable(mut).__call(5, dst)").substr(0, 19), "error: bad argument");
  script.request_box->request = nullptr;
  EXPECT_NE(script.run("mut(dst)").find("invalid argument to mutator object"), std::string::npos);
  EXPECT_EQ(script.run("local gc = getmetatable(mut).__gc gc(mut) gc(mut) mut(req('mg k'))")
                .substr(0, 19),
            "error: bad argument");
}

TEST(MutatorBinding, SurvivesAStateWithoutMemory) {
  constexpr const char* kScript =
      "local mut = mcp.req_mutator_new({ t = 'cmdset', cmd = 'mg' }, "
      "{ t = 'keyset', val = ('k'):rep(100) }, { t = 'flagcopy', flag = 'T', idx = 1 }) "
      "local made = req('mn') mut(made, 12345.5) return tostring(made)";
  Scripted script;
  const std::string wanted = script.run(kScript);
  EXPECT_EQ(wanted, "mg " + std::string(100, 'k') + " T12345.5");
  int n = 1;
  while (n < 1000 && script.state.run_short_of_memory(kScript, n) != wanted) {
    ++n;
  }
  EXPECT_GT(n, 5);
  EXPECT_LT(n, 1000);
}

}  // namespace
}  // namespace kvferry::lua
