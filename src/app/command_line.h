// The command line of `kvferry` itself: our long options, and nutcracker's and Dynomite's flags, so
// that service files keep working.
//
// Threads: the main thread, before anything is started.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "app/server.h"

namespace kvferry::app {

/// What to do.
struct CommandLine {
  enum class Action : std::uint8_t { Serve, Check, Exit };
  Action action = Action::Serve;
  int exit_status = 0;  // Of Exit: the text has been printed.
  bool is_daemon = false;
  ServerOptions server;
};

CommandLine parse_command_line(int argc, char** argv);

}  // namespace kvferry::app
