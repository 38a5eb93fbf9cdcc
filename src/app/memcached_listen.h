// The argument of memcached's -l: [PROTO[x]:][tag[NAME]:|tag_NAME_:]HOST[:PORT], several with
// commas.
//
// Errors: false, and what is wrong. Threads: pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/model.h"

namespace kvferry::app {

/// Longest name of a listener.
inline constexpr std::size_t kTagBytesMax = 8;

/// Appends the listeners of `text`. Those without a port get port 0 in `out` and are named in
/// `portless`, since -p may come later.
bool parse_memcached_listen(std::string_view text, std::vector<config::ListenerOptions>& out,
                            std::vector<std::size_t>& portless, std::string& error);

}  // namespace kvferry::app
