// memcached's options of TLS: -Z and -o ssl_*.
//
// Threads: pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "app/memcached_options.h"

namespace kvferry::app {

/// Takes `value` of the suboption `name`, which begins with "ssl_" (after "no_", where there is
/// one), over. Gives what the value must be when it is not; else an empty text.
std::string_view take_tls_suboption(std::string_view name, std::string_view value,
                                    MemcachedOptions& options);

/// Appends the lines of `stats settings`.
void append_tls_settings(const MemcachedOptions& options, std::string& out);

}  // namespace kvferry::app
