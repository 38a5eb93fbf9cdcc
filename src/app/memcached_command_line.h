// The command line of memcached 1.6, for `kvferry memcached ...` and for a link named `memcached`.
//
// Options that mean something here are taken over; those that only tune memcached's own machinery
// are accepted and named in MemcachedOptions::ignored; those whose loss a user would notice (TLS,
// SASL, UDP) are refused, as are unknown ones.
// Source:  memcached(1), lua-api.md section 2. Errors: a text, ready to be printed.
// Threads: pure.
#pragma once

#include <span>
#include <string>

#include "app/memcached_options.h"

namespace kvferry::app {

struct MemcachedCommandLine {
  enum class Action : std::uint8_t { Serve, Print, Refuse };
  Action action = Action::Serve;
  MemcachedOptions options;
  std::string text;  // Of Print and Refuse; ends in a line end.
};

/// `arguments` are those behind the program's name. Like memcached's own, it passes over words that
/// are no options.
MemcachedCommandLine parse_memcached_command_line(std::span<const std::string> arguments);

}  // namespace kvferry::app
