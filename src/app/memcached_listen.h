// The argument of memcached's -l: [PROTO[x]:][tag[NAME]:|tag_NAME_:]HOST[:PORT], several with
// commas.
//
// Errors: false, and what is wrong. Threads: pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "config/model.h"

namespace kvferry::app {

/// Longest name of a listener.
inline constexpr std::size_t kTagBytesMax = 8;

/// What is decided about listeners when the whole command line is known; by their places.
struct ListenMarks {
  std::vector<std::size_t> portless;  // They take the port of -p.
  std::vector<std::size_t> clear;     // "notls": in clear, -Z or not.
};

/// Appends the listeners of `text`. Those without a port get port 0 in `out`.
bool parse_memcached_listen(std::string_view text, std::vector<config::ListenerOptions>& out,
                            ListenMarks& marks, std::string& error);

}  // namespace kvferry::app
