// The lists of `stats` that are not counters of requests: settings, items, slabs, connections.
//
// Tools read them by name. Our memory has no size classes, so everything is in class 1.
// Source:  memcache-protocol.md section 11.5. Threads: workers call it.
#pragma once

#include <string>
#include <string_view>

#include "app/stats_text.h"

namespace kvferry::app {

/// The whole name of a list that `word` is the beginning of, as memcached looks for it; empty when
/// there is none.
std::string_view find_stats_list(std::string_view word) noexcept;

void append_settings(const StatsSources& sources, std::string& out);
void append_items(const StatsSources& sources, std::string& out);
void append_slabs(const StatsSources& sources, std::string& out);
void append_connections(const StatsSources& sources, std::string& out);

// These append whole replies, their last line included; `words` is all that follows `stats`.

/// stats detail on|off|dump
void answer_detail(const StatsSources& sources, std::string_view words, std::string& out);
/// stats cachedump <class> <limit>
void answer_cachedump(const StatsSources& sources, std::string_view words, std::string& out);

}  // namespace kvferry::app
