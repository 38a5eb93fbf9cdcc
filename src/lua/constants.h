// The numbers of the Lua API. Scripts compare and print them, so they are part of its contract.
//
// Source:    docs/lua.md, "Constants".
#pragma once

#include <lua.hpp>

#include "protocol/memcache/command.h"

namespace kvferry::lua {

/// First number that is no storage command.
inline constexpr unsigned kCommandEndStorage = 21;
/// Groups that a script may attach to.
inline constexpr unsigned kCommandAny = 36;
inline constexpr unsigned kCommandAnyStorage = 37;

/// The number of `command`; 0 when it has none.
unsigned command_number(memcache::Command command) noexcept;
/// Unknown for groups, and for numbers that stand for nothing.
memcache::Command command_of_number(unsigned number) noexcept;

/// Adds CMD_*, MCMC_*, P_OK, WAIT_*, RES_* to the table at the top of the stack.
void define_constants(lua_State* lua);

}  // namespace kvferry::lua
