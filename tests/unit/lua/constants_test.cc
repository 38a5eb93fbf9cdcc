#include "lua/constants.h"

#include <gtest/gtest.h>

#include "route/context.h"
#include "tests/unit/lua/plain_state.h"

namespace kvferry::lua {
namespace {

using memcache::Command;

TEST(Constants, AreTheNumbersOfTheApi) {
  PlainState state(define_constants);
  EXPECT_EQ(
      state.run("return mcp.CMD_MG, mcp.CMD_MS, mcp.CMD_MD, mcp.CMD_MN, mcp.CMD_MA, "
                "mcp.CMD_ME, mcp.CMD_GET, mcp.CMD_GAT, mcp.CMD_SET, mcp.CMD_ADD, mcp.CMD_CAS, "
                "mcp.CMD_GETS, mcp.CMD_GATS, mcp.CMD_INCR, mcp.CMD_DECR, mcp.CMD_TOUCH, "
                "mcp.CMD_APPEND, mcp.CMD_DELETE, mcp.CMD_REPLACE, mcp.CMD_PREPEND"),
      "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20");
  EXPECT_EQ(state.run("return mcp.CMD_END_STORAGE, mcp.CMD_QUIT, mcp.CMD_STATS, mcp.CMD_SLABS, "
                      "mcp.CMD_WATCH, mcp.CMD_LRU, mcp.CMD_VERSION, mcp.CMD_SHUTDOWN, "
                      "mcp.CMD_EXTSTORE, mcp.CMD_FLUSH_ALL, mcp.CMD_VERBOSITY, "
                      "mcp.CMD_LRU_CRAWLER, mcp.CMD_REFRESH_CERTS, mcp.CMD_CACHE_MEMLIMIT, "
                      "mcp.CMD_ANY, mcp.CMD_ANY_STORAGE"),
            "21 22 23 24 25 26 27 28 29 30 31 32 33 34 36 37");
  EXPECT_EQ(state.run("return mcp.MCMC_CODE_STORED, mcp.MCMC_CODE_EXISTS, mcp.MCMC_CODE_DELETED, "
                      "mcp.MCMC_CODE_TOUCHED, mcp.MCMC_CODE_VERSION, mcp.MCMC_CODE_NOT_FOUND, "
                      "mcp.MCMC_CODE_NOT_STORED, mcp.MCMC_CODE_OK, mcp.MCMC_CODE_NOP, "
                      "mcp.MCMC_CODE_END, mcp.MCMC_CODE_ERROR, mcp.MCMC_CODE_CLIENT_ERROR, "
                      "mcp.MCMC_CODE_SERVER_ERROR, mcp.MCMC_ERR, mcp.P_OK"),
            "8 9 10 11 12 13 14 15 16 17 21 22 23 -1 0");
  EXPECT_EQ(state.run("return mcp.WAIT_ANY, mcp.WAIT_OK, mcp.WAIT_GOOD, mcp.WAIT_FASTGOOD, "
                      "mcp.WAIT_RESUME, mcp.RES_GOOD, mcp.RES_OK, mcp.RES_ANY"),
            "1 2 3 4 true 8 16 32");
}

TEST(Constants, MapCommandsBothWays) {
  for (std::size_t i = 0; i < memcache::kCommandCount; ++i) {
    const auto command = static_cast<Command>(i);
    const unsigned number = command_number(command);
    if (number != 0) {
      EXPECT_EQ(command_of_number(number), command) << number;
    }
    EXPECT_EQ(memcache::has_key(command) || command == Command::Mn,
              number != 0 && number < kCommandEndStorage)
        << memcache::command_name(command);
  }
  EXPECT_EQ(command_number(Command::Unknown), 0U);
  EXPECT_EQ(command_number(Command::Debugtime), 0U);
  for (const unsigned number :
       {0U, kCommandEndStorage, 35U, kCommandAny, kCommandAnyStorage, ~0U}) {
    EXPECT_EQ(command_of_number(number), Command::Unknown) << number;
  }
}

TEST(Constants, NameTheWaitModes) {
  EXPECT_EQ(static_cast<int>(route::WaitMode::Any), 1);
  EXPECT_EQ(static_cast<int>(route::WaitMode::FastGood), 4);
}

}  // namespace
}  // namespace kvferry::lua
