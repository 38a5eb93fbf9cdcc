// RedisBackend: one Redis server of a pool, as one worker sees it: a Backend for each lane.
//
// A lane is what connections have to be set up for: the version of the protocol and the database.
// Most clients use one, so that is found without a search; others are made when they are first
// asked for, and stay. All lanes share health and counters of the server.
//
// Threads: one worker.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "pool/backend.h"
#include "protocol/resp/reply_writer.h"

namespace kvferry::pool {

class RedisBackend {
 public:
  /// The greeting in `setup` is not used: each lane has its own.
  RedisBackend(Backend::Setup setup, net::Loop& loop, PoolEvents& events,
               std::uint64_t random_seed);

  /// Connections of `version` to `database` of clients. Clients may select only as many databases
  /// as the pool says, which bounds the number of lanes.
  Backend& lane(resp::Version version, std::uint32_t database) {
    if (version == resp::Version::Two && database == 0) [[likely]] {
      return *lanes_.front().backend;
    }
    return other_lane(version, database);
  }

  // As those of Backend, for all lanes.
  void configure(Backend::Setup setup);
  void preconnect() { lanes_.front().backend->preconnect(); }
  void retire();
  void shut();
  bool is_drained() const;
  void sample_queue();

  const ServerOptions& server() const { return setup_.server; }
  const net::Address& address() const { return setup_.address; }
  const std::shared_ptr<BackendHealth>& shared_health() const { return setup_.health; }
  const std::shared_ptr<BackendStats>& shared_stats() const { return setup_.stats; }
  BackendStats& stats() { return *setup_.stats; }

 private:
  struct Lane {
    resp::Version version;
    std::uint32_t database;  // Of clients.
    std::unique_ptr<Backend> backend;
  };

  Backend& other_lane(resp::Version version, std::uint32_t database);
  Backend& add_lane(resp::Version version, std::uint32_t database);
  Backend::Setup setup_of(resp::Version version, std::uint32_t database) const;

  Backend::Setup setup_;
  net::Loop& loop_;
  PoolEvents& events_;
  std::vector<Lane> lanes_;  // The first one is that of version 2 and database 0.
  std::uint64_t random_state_;
  bool is_retired_ = false;
};

}  // namespace kvferry::pool
