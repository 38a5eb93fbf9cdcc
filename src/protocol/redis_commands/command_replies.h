// The replies to COMMAND and its subcommands, from the command table, as redis-server 7.0.15 gives
// them.
//
// What differs: commands that its version does not have are told too; descriptions that are written
// for people (the summary, complexity, history and arguments of DOCS, the notes of key specs, HELP)
// are left out, or are ours; names are in the order of the alphabet, where the server has none.
// GETKEYS tells what find_keys() finds. Threads:   pure functions.
#pragma once

#include <span>
#include <string_view>

#include "base/delegate.h"
#include "protocol/redis_commands/command.h"
#include "protocol/resp/reply_writer.h"

namespace kvferry::redis {

/// Whether a client is told of a command: whether it may run it, and the pool can serve it. Without
/// one it is told of all.
using CommandFilter = base::Delegate<bool(const Command&)>;

/// Answers a request that names COMMAND or a subcommand of it and whose count was checked.
void compose_command_reply(std::span<const std::string_view> args, const CommandFilter& is_shown,
                           resp::ReplyWriter& reply);

}  // namespace kvferry::redis
