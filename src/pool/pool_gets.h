// PoolGets: gets of several keys of one pool: each backend is asked once.
//
// Threads: one worker.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "pool/multigets.h"
#include "pool/placement.h"
#include "protocol/memcache/request.h"

namespace kvferry::pool {

class Backend;

class PoolGets final : public MultiGets {
 public:
  using MultiGets::MultiGets;

  /// Splits `request` (a retrieval of two keys or more) over `backends` as `placement` says and
  /// answers `parent`. When all keys belong to one backend the request goes there as it came.
  /// False, with nothing done, when no server is live.
  bool start(call::Call& parent, const memcache::Request& request, const Placement& placement,
             const std::vector<std::unique_ptr<Backend>>& backends, OnPartial on_partial,
             std::uint64_t& random_state);

 private:
  bool place_keys(const memcache::Request& request, const Placement& placement,
                  std::uint64_t& random_state);
  void number_parts(std::size_t backend_count);
  void send(call::Call& parent, const memcache::Request& request,
            const std::vector<std::unique_ptr<Backend>>& backends, OnPartial on_partial);
  static void send_part(const MultiGet& multiget, std::uint16_t index, Backend& backend,
                        std::string_view prefix);

  // Scratch of start(), kept to spare allocations.
  std::vector<std::uint32_t> part_of_backend_;  // kNoServer outside of number_parts().
  std::vector<std::uint32_t> backend_of_part_;
};

}  // namespace kvferry::pool
