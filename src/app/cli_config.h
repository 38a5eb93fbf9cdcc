// `kvferry config show|convert|keys`: a configuration as the program understands it.
//
// Reads files only: resolves no name and opens no socket.
// Threads: the main thread, before anything is started.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

namespace kvferry::app {

/// Prints every setting of the files in our own form, defaults included, secrets hidden.
int run_config_show(const std::vector<std::string>& paths, std::FILE* out, std::FILE* err);

/// Prints the files in our own form, without defaults, with warnings and notices as comments.
int run_config_convert(const std::vector<std::string>& paths, std::FILE* out, std::FILE* err);

/// The command line behind the word `config`. Exit status 2 when it cannot be understood.
/// `keys` prints docs/configuration.md.
int run_config(const std::vector<std::string>& arguments);

}  // namespace kvferry::app
