#include "lua/constants.h"

#include <array>
#include <cstddef>

#include "route/route_reply.h"

namespace kvferry::lua {
namespace {

using memcache::Command;
using route::AnswerCode;
using route::ResultClass;

struct NamedCommand {
  const char* name;
  Command command;
};

/// In the order of their numbers, which begin at 1; the place at kCommandEndStorage is no command.
constexpr std::array kCommands = {
    NamedCommand{"CMD_MG", Command::Mg},
    NamedCommand{"CMD_MS", Command::Ms},
    NamedCommand{"CMD_MD", Command::Md},
    NamedCommand{"CMD_MN", Command::Mn},
    NamedCommand{"CMD_MA", Command::Ma},
    NamedCommand{"CMD_ME", Command::Me},
    NamedCommand{"CMD_GET", Command::Get},
    NamedCommand{"CMD_GAT", Command::Gat},
    NamedCommand{"CMD_SET", Command::Set},
    NamedCommand{"CMD_ADD", Command::Add},
    NamedCommand{"CMD_CAS", Command::Cas},
    NamedCommand{"CMD_GETS", Command::Gets},
    NamedCommand{"CMD_GATS", Command::Gats},
    NamedCommand{"CMD_INCR", Command::Incr},
    NamedCommand{"CMD_DECR", Command::Decr},
    NamedCommand{"CMD_TOUCH", Command::Touch},
    NamedCommand{"CMD_APPEND", Command::Append},
    NamedCommand{"CMD_DELETE", Command::Delete},
    NamedCommand{"CMD_REPLACE", Command::Replace},
    NamedCommand{"CMD_PREPEND", Command::Prepend},
    NamedCommand{"CMD_END_STORAGE", Command::Unknown},
    NamedCommand{"CMD_QUIT", Command::Quit},
    NamedCommand{"CMD_STATS", Command::Stats},
    NamedCommand{"CMD_SLABS", Command::Slabs},
    NamedCommand{"CMD_WATCH", Command::Watch},
    NamedCommand{"CMD_LRU", Command::Lru},
    NamedCommand{"CMD_VERSION", Command::Version},
    NamedCommand{"CMD_SHUTDOWN", Command::Shutdown},
    NamedCommand{"CMD_EXTSTORE", Command::Extstore},
    NamedCommand{"CMD_FLUSH_ALL", Command::FlushAll},
    NamedCommand{"CMD_VERBOSITY", Command::Verbosity},
    NamedCommand{"CMD_LRU_CRAWLER", Command::LruCrawler},
    NamedCommand{"CMD_REFRESH_CERTS", Command::RefreshCerts},
    NamedCommand{"CMD_CACHE_MEMLIMIT", Command::CacheMemlimit},
};
static_assert(kCommands[kCommandEndStorage - 1].command == Command::Unknown);
static_assert(kCommands[8].command == Command::Set && kCommands[33].name != nullptr);

/// Number of each command, by its place in memcache::Command.
constexpr std::array<std::uint8_t, memcache::kCommandCount> make_numbers() {
  std::array<std::uint8_t, memcache::kCommandCount> numbers{};
  for (std::size_t i = 0; i < kCommands.size(); ++i) {
    if (kCommands[i].command != Command::Unknown) {
      numbers[static_cast<std::size_t>(kCommands[i].command)] = static_cast<std::uint8_t>(i + 1);
    }
  }
  return numbers;
}
constexpr auto kNumbers = make_numbers();

struct NamedNumber {
  const char* name;
  lua_Integer number;
};

constexpr NamedNumber named(const char* name, AnswerCode code) {
  return {name, static_cast<lua_Integer>(code)};
}
constexpr NamedNumber named(const char* name, ResultClass result_class) {
  return {name, static_cast<lua_Integer>(result_class)};
}

constexpr std::array kNamedNumbers = {
    NamedNumber{"CMD_ANY", kCommandAny},
    NamedNumber{"CMD_ANY_STORAGE", kCommandAnyStorage},
    named("MCMC_CODE_STORED", AnswerCode::Stored),
    named("MCMC_CODE_EXISTS", AnswerCode::Exists),
    named("MCMC_CODE_DELETED", AnswerCode::Deleted),
    named("MCMC_CODE_TOUCHED", AnswerCode::Touched),
    named("MCMC_CODE_VERSION", AnswerCode::Version),
    named("MCMC_CODE_NOT_FOUND", AnswerCode::NotFound),
    named("MCMC_CODE_NOT_STORED", AnswerCode::NotStored),
    named("MCMC_CODE_OK", AnswerCode::Ok),
    named("MCMC_CODE_NOP", AnswerCode::Nop),
    named("MCMC_CODE_END", AnswerCode::End),
    named("MCMC_CODE_ERROR", AnswerCode::Error),
    named("MCMC_CODE_CLIENT_ERROR", AnswerCode::ClientError),
    named("MCMC_CODE_SERVER_ERROR", AnswerCode::ServerError),
    NamedNumber{"MCMC_ERR", -1},
    NamedNumber{"P_OK", 0},
    // WaitMode of route/context.h.
    NamedNumber{"WAIT_ANY", 1},
    NamedNumber{"WAIT_OK", 2},
    NamedNumber{"WAIT_GOOD", 3},
    NamedNumber{"WAIT_FASTGOOD", 4},
    named("RES_GOOD", ResultClass::Good),
    named("RES_OK", ResultClass::Ok),
    named("RES_ANY", ResultClass::Any),
};

}  // namespace

unsigned command_number(Command command) noexcept {
  return kNumbers[static_cast<std::size_t>(command)];
}

Command command_of_number(unsigned number) noexcept {
  return number == 0 || number > kCommands.size() ? Command::Unknown
                                                  : kCommands[number - 1].command;
}

void define_constants(lua_State* lua) {
  lua_Integer place = 0;
  for (const NamedCommand& command : kCommands) {
    ++place;
    lua_pushinteger(lua, place);
    lua_setfield(lua, -2, command.name);
  }
  for (const auto& [name, number] : kNamedNumbers) {
    lua_pushinteger(lua, number);
    lua_setfield(lua, -2, name);
  }
  lua_pushboolean(lua, 1);
  lua_setfield(lua, -2, "WAIT_RESUME");
}

}  // namespace kvferry::lua
