// PoolGets: gets of several keys of one pool: each backend is asked once, or, for gat and gats,
// with as many lines as memcached's limit of such a line wants.
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

  /// Whether `request` may not go to its backend as it came.
  static bool is_for(const memcache::Request& request) {
    return request.key_count > 1 || is_too_long(request);
  }
  /// Splits `request`, a retrieval that is_for() this, over `backends` as `placement` says and
  /// answers `parent`. When all keys belong to one backend the request goes there as it came, if it
  /// may.
  /// False, with nothing done, when no server is live.
  bool start(call::Call& parent, const memcache::Request& request, const Placement& placement,
             const std::vector<std::unique_ptr<Backend>>& backends, OnPartial on_partial,
             std::uint64_t& random_state);

 private:
  bool place_keys(const memcache::Request& request, const Placement& placement,
                  std::uint64_t& random_state);
  static bool is_too_long(const memcache::Request& request) {
    return request.line.size() > kTouchLineBytesMax && request.key_count != 0 &&
           memcache::is_retrieval(request.command) && !may_line_be_long(request.command);
  }
  /// Puts numbers of parts in place of those of backends. A part has at most `keys_bytes_max` bytes
  /// of keys and blanks before them.
  void number_parts(std::size_t backend_count, std::size_t keys_bytes_max);
  void send(call::Call& parent, const memcache::Request& request,
            const std::vector<std::unique_ptr<Backend>>& backends, OnPartial on_partial);
  static void send_part(const MultiGet& multiget, std::uint16_t index, Backend& backend,
                        std::string_view head);

  // Scratch of start(), kept to spare allocations.
  struct OpenPart {
    std::uint32_t number = kNoServer;  // kNoServer outside of number_parts().
    std::size_t keys_bytes = 0;
  };
  std::vector<OpenPart> open_parts_;  // Of each backend, the last one.
  std::vector<std::uint32_t> backend_of_part_;
};

}  // namespace kvferry::pool
