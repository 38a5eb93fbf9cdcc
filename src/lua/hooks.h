// Hooks: which function of a script gets a request: by command, and by the tag of the listener.
//
//   hook of (command, tag)  else  hook of (command, no tag)  else  the local server
//
// Threads: one worker.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "call/call.h"
#include "lua/hookable.h"
#include "lua/passed_gets.h"
#include "lua/script_stats.h"
#include "net/loop.h"

namespace kvferry::lua {

inline constexpr std::size_t kTagBytesMax = 8;

/// A hook that a load has attached and that is not in force yet. Command Unknown stands for all;
/// see `is_storage_only`.
struct StagedHook {
  std::string tag;
  memcache::Command command = memcache::Command::Unknown;
  Hookable* target = nullptr;
};

/// What limits requests that are under way; shared out to workers.
struct RequestLimits {
  std::uint32_t active_max = 0;        // 0: none.
  std::uint64_t buffer_bytes_max = 0;  // 0: none.
};

class Hooks {
 public:
  Hooks(net::Loop& loop, call::CallPool& calls, call::Target& local, ScriptStats& stats);
  ~Hooks();
  Hooks(const Hooks&) = delete;
  Hooks& operator=(const Hooks&) = delete;

  /// The target of listeners with `tag`; "" for those without. Lives as long as the hooks.
  call::Target& target(const std::string& tag);
  /// Commands without a key that listeners with `tag` are to send to their target.
  std::bitset<memcache::kCommandCount> keyless(const std::string& tag);

  /// Puts staged hooks in force, in order; what they replace is released, what no hook of them
  /// names stays.
  void apply(const std::vector<StagedHook>& staged);
  void set_limits(const RequestLimits& limits) { limits_ = limits; }
  const RequestLimits& limits() const { return limits_; }
  /// Whether values and replies may still be kept.
  bool has_buffer_room() const {
    return limits_.buffer_bytes_max == 0 || stats_.buffer_bytes.get() <= limits_.buffer_bytes_max;
  }
  /// Lets go of everything.
  void clear();

 private:
  class TagTarget;
  using Table = std::array<Hookable*, memcache::kCommandCount>;

  void rebuild();
  void send_wide(call::Call& call, const memcache::Request& request, Hookable& hook,
                 call::Target& target);

  call::CallPool& calls_;
  call::Target& local_;
  ScriptStats& stats_;
  PassedGets passed_gets_;
  RequestLimits limits_;
  std::map<std::string, Table> tables_;  // As attached, by tag.
  std::map<std::string, std::unique_ptr<TagTarget>> targets_;
};

}  // namespace kvferry::lua
