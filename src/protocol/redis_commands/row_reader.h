// RowReader: rows of commands.csv, checked. Part of the program that makes the table when kvferry
// is built; not of kvferry.
//
// The file: a line with the names of the columns, then one line a command, sorted, a container
// before its subcommands. No quotes: a field has no comma. Lists are words with blanks between
// them, key_specs have a "; " between them:
//
//   index 1 range 0 1 0 RW insert; keyword STREAMS 1 range -1 1 2 RO access; index 2 keynum 0 1 1
//   RO access; unknown unknown OW
//
// Errors:    a text that begins with the line, such as `12: arity "x": not a number`.
// Threads:   one user at a time.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/redis_commands/command.h"
#include "protocol/redis_commands/key_spec.h"

namespace kvferry::redis {

struct CommandRow {
  Command command;  // Without id, key_specs and subcommands.
  std::vector<KeySpec> key_specs;
  std::string_view group;
  std::string_view since;
  std::string_view doc_flag;
  std::string_view tips;
  std::string_view note;

  std::string_view container() const noexcept {
    const std::size_t bar = command.name.find('|');
    return bar == std::string_view::npos ? std::string_view() : command.name.substr(0, bar);
  }
  /// What a client writes: of "client|list" the "list".
  std::string_view word() const noexcept { return command.name.substr(command.name.find('|') + 1); }
};

/// Reads the whole file. The rows view `text`. When something is wrong, `error` says where and
/// what, and the rows are of no use.
std::vector<CommandRow> read_command_rows(std::string_view text, std::string& error);

}  // namespace kvferry::redis
