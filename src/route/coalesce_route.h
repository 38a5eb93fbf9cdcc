// CoalesceRoute: identical reads that are under way at once become one, whose answer all get.
//
//   read  --first of its kind--> leader, sent to the child --answer--> the leader and who joined it
//         --the same line------> joined, waits
//   write --> no later read joins the reads before it; said once before it is sent and once when it
//   is
//             answered (WriteGenerations)
//
// A leader that fails fails for all. A reply that tells its client to bring a new value (flag W) is
// for the leader alone: those who joined it are sent on their own.
// Source: docs/routelib.md, "route_coalesce". Threads: one worker; reads of different workers do
// not meet.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "route/waiting_route.h"
#include "route/write_generations.h"

namespace kvferry::route {

/// So many reads may wait for one leader; the next one is sent, and others can join that.
inline constexpr std::size_t kJoinedReadsMax = 1024;
/// Flights that are kept for later reads; more are given up when they end.
inline constexpr std::size_t kFreeFlightsMax = 256;

class CoalesceRoute final : public WaitingRoute {
 public:
  /// `writes` outlives the route.
  CoalesceRoute(const RouteSetup& setup, WriteGenerations& writes)
      : WaitingRoute(setup), writes_(writes) {}

  std::size_t flights_for_test() const { return flights_.size(); }

 private:
  static constexpr std::size_t kBuckets = 1024;

  /// A read that is under way, and who waits for it.
  struct Flight final : RunNote {
    std::string line;
    std::uint64_t line_hash = 0;
    std::uint64_t generation = 0;
    std::vector<RouteRun*> joined;
    Flight* next = nullptr;  // In its bucket.
    bool is_open = false;    // In a bucket: it can be joined.
    std::size_t place = 0;   // In flights_.
  };

  void start(RouteRun& run) override;
  void on_wait_over(RouteRun& run) override;

  void start_read(RouteRun& run, std::uint64_t key_hash);
  void forward(RouteRun& run);
  void land(RouteRun& leader, Flight& flight);

  Flight*& bucket_of(std::uint64_t line_hash) { return open_[line_hash % kBuckets]; }
  Flight* find(std::uint64_t line_hash, std::string_view line);
  Flight& begin_flight(std::uint64_t line_hash, std::string_view line, std::uint64_t generation);
  void close(Flight& flight);
  void put_back(Flight& flight);

  WriteGenerations& writes_;
  std::array<Flight*, kBuckets> open_{};
  std::vector<std::unique_ptr<Flight>> flights_;  // All.
  std::vector<Flight*> free_;
};

}  // namespace kvferry::route
