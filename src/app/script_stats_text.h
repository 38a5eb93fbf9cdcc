// Replies to `stats proxy`, `stats proxyfuncs`, `stats proxybe`, and what scripts add to plain
// `stats`.
//
// Source: docs/operations.md; the names are those of memcached's built-in proxy.
// Threads: workers call it; it reads counters only.
#pragma once

#include <string>
#include <string_view>

#include "app/script_control.h"

namespace kvferry::app {

/// Appends STAT lines and END; false when `words` is none of the three.
bool compose_script_stats(const ScriptControl& scripts, std::string_view words, std::string& out);
/// STAT lines for plain `stats`, without END. `front_errors` are the lines that sessions refused.
std::string compose_script_rows(const ScriptControl& scripts, std::uint64_t front_errors);

}  // namespace kvferry::app
