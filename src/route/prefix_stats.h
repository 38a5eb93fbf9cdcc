// PrefixStats: how often keys with one prefix are asked for: `stats detail`.
//
// Off unless somebody turns it on; then each command takes a lock, as memcached's does.
// Source:  memcached protocol.txt, "stats detail". Threads: any.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace kvferry::route {

/// Prefixes that are counted; commands with others are not.
inline constexpr std::size_t kPrefixesMax = 10000;

class PrefixStats {
 public:
  PrefixStats(char delimiter, bool is_on) noexcept : delimiter_(delimiter), is_on_(is_on) {}

  bool is_on() const noexcept { return is_on_.load(std::memory_order_relaxed); }
  void turn(bool is_on) noexcept { is_on_.store(is_on, std::memory_order_relaxed); }

  void count_get(std::string_view key, bool is_hit);
  void count_set(std::string_view key);
  void count_delete(std::string_view key);
  void reset();
  /// Appends "PREFIX name get N hit N set N del N" lines.
  void dump(std::string& out);

 private:
  struct Counts {
    std::uint64_t gets = 0;
    std::uint64_t hits = 0;
    std::uint64_t sets = 0;
    std::uint64_t deletes = 0;
  };
  /// Null for keys without a delimiter, and when there are too many prefixes.
  Counts* find(std::string_view key);

  const char delimiter_;
  std::atomic<bool> is_on_;
  std::mutex mutex_;
  std::map<std::string, Counts, std::less<>> counts_;
};

}  // namespace kvferry::route
