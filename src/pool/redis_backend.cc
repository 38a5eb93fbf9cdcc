#include "pool/redis_backend.h"

#include <algorithm>
#include <utility>

#include "pool/backoff.h"

namespace kvferry::pool {

RedisBackend::RedisBackend(Backend::Setup setup, net::Loop& loop, PoolEvents& events,
                           std::uint64_t random_seed)
    : setup_(std::move(setup)), loop_(loop), events_(events), random_state_(random_seed | 1) {
  setup_.stats = std::make_shared<BackendStats>();
  add_lane(resp::Version::Two, 0);
}

Backend::Setup RedisBackend::setup_of(resp::Version version, std::uint32_t database) const {
  Backend::Setup setup = setup_;
  const RedisOptions& redis = setup_.options->redis;
  setup.greeting = redis_greeting(redis, version, redis.db_base + database);
  return setup;
}

Backend& RedisBackend::add_lane(resp::Version version, std::uint32_t database) {
  lanes_.push_back(Lane{.version = version,
                        .database = database,
                        .backend = std::make_unique<Backend>(setup_of(version, database), loop_,
                                                             events_, next_random(random_state_))});
  Backend& backend = *lanes_.back().backend;
  if (is_retired_) {
    backend.retire();
  }
  return backend;
}

Backend& RedisBackend::other_lane(resp::Version version, std::uint32_t database) {
  const auto found = std::find_if(lanes_.begin(), lanes_.end(), [&](const Lane& lane) {
    return lane.version == version && lane.database == database;
  });
  return found == lanes_.end() ? add_lane(version, database) : *found->backend;
}

void RedisBackend::configure(Backend::Setup setup) {
  setup.stats = setup_.stats;
  setup_ = std::move(setup);
  for (Lane& lane : lanes_) {
    lane.backend->configure(setup_of(lane.version, lane.database));
  }
}

void RedisBackend::retire() {
  is_retired_ = true;
  for (Lane& lane : lanes_) {
    lane.backend->retire();
  }
}

void RedisBackend::shut() {
  for (Lane& lane : lanes_) {
    lane.backend->shut();
  }
}

bool RedisBackend::is_drained() const {
  return std::all_of(lanes_.begin(), lanes_.end(),
                     [](const Lane& lane) { return lane.backend->is_drained(); });
}

void RedisBackend::sample_queue() {
  std::size_t bytes = 0;
  for (const Lane& lane : lanes_) {
    bytes += lane.backend->queued_bytes();
  }
  setup_.stats->queue_bytes.set(bytes);
}

}  // namespace kvferry::pool
