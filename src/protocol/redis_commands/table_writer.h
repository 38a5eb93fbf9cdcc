// The C++ source that holds the command table, from the rows of commands.csv. Part of the program
// that makes the table when kvferry is built; not of kvferry.
#pragma once

#include <span>
#include <string>

#include "protocol/redis_commands/row_reader.h"

namespace kvferry::redis {

/// The text of a source file that defines kCommandRows (command_rows.h).
std::string compose_table(std::span<const CommandRow> rows);

}  // namespace kvferry::redis
