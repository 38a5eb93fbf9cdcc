// Administration: memcached's commands for operators, as far as they are not about one key.
//
// What only tunes memcached's slabs and its crawler is accepted and does nothing: our memory needs
// no such care.
// Source:  memcache-protocol.md section 10. Threads: any, at the same time.
#pragma once

#include <functional>
#include <string>

#include "app/store_clock.h"
#include "protocol/memcache/request.h"
#include "store/store.h"

namespace kvferry::app {

class Administration {
 public:
  struct Setup {
    store::Store* store = nullptr;
    StoreClock* clock = nullptr;
    bool allows_shutdown = false;
    bool has_test_hooks = false;
    std::function<void()> end;             // Ends the process when everything is answered.
    std::function<void()> on_clock_moved;  // Workers look at the clock.
    /// Reads certificates anew, for connections from now on; gives what is wrong with them.
    std::function<std::string()> refresh_certificates{};
  };
  explicit Administration(Setup setup) : setup_(std::move(setup)) {}

  /// Appends the reply to `request`; false when this is no command of ours. An empty reply: the
  /// process ends.
  bool run(const memcache::Request& request, std::string& out);

 private:
  bool lru_crawler(std::string_view text, std::string& out);
  void lru(std::string_view text, std::string& out);
  void slabs(std::string_view text, std::string& out);
  void set_memory_limit(std::string_view text, std::string& out) const;
  void shut_down(std::string_view text, std::string& out) const;
  void refresh_certificates(std::string& out) const;
  bool move_clock(std::string_view text, std::string& out) const;

  Setup setup_;
};

}  // namespace kvferry::app
