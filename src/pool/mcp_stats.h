// Counters of the backends that scripts use, on one worker; summed over workers when somebody
// looks.
//
// Threads:   written by one worker. Counters and bad_links() are read from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/counter.h"

namespace kvferry::pool {

/// Of one backend; lives as long as it does.
struct McpLabelStats {
  std::string label;
  base::Counter bad_links;  // Gauge: connections that are marked bad now.
};

class McpStats {
 public:
  base::Counter backends;      // Gauge: live backends, those that are never connected to
                               // included.
  base::Counter marked_bad;    // Times a connection was marked bad.
  base::Counter failed;        // Failures that were followed by a new attempt at once.
  base::Counter failed_depth;  // Requests that a depth limit refused.

  /// Makes the counters of a backend; they are listed as long as somebody holds them.
  std::shared_ptr<McpLabelStats> add_label(std::string label);

  /// Bad connections by label, one entry a backend that has some.
  std::vector<std::pair<std::string, std::uint64_t>> bad_links() const;

 private:
  mutable std::mutex mutex_;  // Taken when backends come and when statistics are read; never for a
                              // request.
  std::vector<std::weak_ptr<McpLabelStats>> labels_;
};

}  // namespace kvferry::pool
