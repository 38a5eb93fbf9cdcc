// `kvferry explain`: which backend a key belongs to, and why.
//
// Places keys with the code that places traffic. Reads files only: resolves no name and opens no
// socket, so every backend counts as live.
// Threads: the main thread, before anything is started.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

namespace kvferry::app {

struct ExplainOptions {
  std::vector<std::string> paths;  // Configuration files and directories.
  std::string pool;                // Empty: every pool.
  bool tsv = false;                // One line a key for programs.
  bool hex = false;                // Keys are given in hexadecimal digits.
  bool keys_from_input = false;    // Also keys from `in`, one a line.
  std::string spread_file;         // Keys of a file, counted by backend instead of shown.
  std::vector<std::string> keys;
};

/// Gives the exit status: 0, or 1 after the reason was printed on `err`.
int run_explain(const ExplainOptions& options, std::FILE* in, std::FILE* out, std::FILE* err);

/// The command line behind the word `explain`. Exit status 2 when it cannot be understood.
int run_explain(const std::vector<std::string>& arguments);

}  // namespace kvferry::app
