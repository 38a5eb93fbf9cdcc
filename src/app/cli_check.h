// `kvferry check FILE...`, also reached as `-t -c FILE`: is a configuration right, and if not, why?
//
// Reads files only: resolves no name and opens no socket.
// Threads: the main thread, before anything is started.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

namespace kvferry::app {

struct CheckOptions {
  std::vector<std::string> paths;  // Files and directories, together one configuration.
  bool json = false;               // Print the problems as a JSON array on `out` instead.
  std::string program = "kvferry";
};

/// Prints problems and then the verdict in nutcracker's words on `err`. Gives the exit status: 0
/// when the configuration can be used, else 1.
int run_check(const CheckOptions& options, std::FILE* out, std::FILE* err);

/// The command line behind the word `check`. Exit status 2 when it cannot be understood.
int run_check(const std::vector<std::string>& arguments);

}  // namespace kvferry::app
