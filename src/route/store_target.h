// StoreTarget: makes the embedded store a target: memcached requests in, memcached replies out.
//
// Everything is answered before send() returns, except values that are still coming and replies
// that the sink pauses. The counters are this worker's own; the store is shared by all.
// Source:    memcached protocol.txt; docs/protocols.md.
// Errors:    the words of a plain memcached server.
// Threads:   one worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/memory_budget.h"
#include "base/slab_pool.h"
#include "call/call.h"
#include "protocol/memcache/request.h"
#include "route/near_stores.h"
#include "route/prefix_stats.h"
#include "route/reply_text.h"
#include "route/store_command_stats.h"
#include "route/store_dump.h"
#include "route/store_events.h"
#include "route/store_transfers.h"
#include "store/store.h"

namespace kvferry::route {

struct StoreTargetOptions {
  bool is_flush_enabled = true;
  bool is_dump_enabled = true;
  watch::Hub* watch = nullptr;        // Where events of items are reported; null: nowhere.
  PrefixStats* prefixes = nullptr;    // Null: nothing is counted by prefix.
  NearStores* near_stores = nullptr;  // What flush_all flushes too; null: nothing.
};

class StoreTarget final : public call::Target {
 public:
  /// `store` and `budget` outlive the target.
  StoreTarget(store::Store& store, base::MemoryBudget& budget, const StoreTargetOptions& options);
  /// No call may be unanswered.
  ~StoreTarget() override;

  /// The time that requests are served at; call when the worker's clock moves on by a second.
  void set_now(store::Instant now) noexcept { now_ = now; }
  store::Instant now() const noexcept { return now_; }

  void send(call::Call& call, const memcache::Request& request) override;

  /// Drops the item of `key` (decoded), because a value for it was refused before it got here.
  void forget(std::string_view key);
  /// The same for a request that the parser refused as too large; counts it.
  void on_value_too_large(std::string_view key);

  const StoreCommandStats& stats() const noexcept { return stats_; }
  StoreCommandStats& stats() noexcept { return stats_; }
  store::Store& store() noexcept { return store_; }
  /// Gives memory of finished transfers back; call about once a second.
  void trim() noexcept;

 private:
  friend class Delivery;
  friend class Upload;
  struct GetVisit;
  struct MetaGetVisit;
  struct DebugVisit;

  // Classic commands.
  void on_retrieval(call::Call& call, const memcache::Request& request);
  void on_storage(call::Call& call, const memcache::Request& request);
  void on_arith(call::Call& call, const memcache::Request& request);
  void on_touch(call::Call& call, const memcache::Request& request);
  void on_delete(call::Call& call, const memcache::Request& request);
  void on_flush_all(call::Call& call, const memcache::Request& request);
  void on_dump(call::Call& call, const memcache::Request& request);
  void forget_dump(StoreDump& dump);

  /// Whether somebody looks at each command.
  bool is_observed() const noexcept {
    return events_.wants(watch::Stream::Fetchers) ||
           (options_.prefixes != nullptr && options_.prefixes->is_on());
  }
  void observe(const call::Call& call, const memcache::Request& request);
  void observe_key(memcache::Command command, int client_fd, std::string_view key);
  void report_stored(const call::Call& call, const StorageOrder& order,
                     const store::StoreResult& result) const;
  void report_deleted(std::string_view key, std::string_view command,
                      const store::DeleteResult& result) const;

  // Meta commands.
  void on_meta(call::Call& call, const memcache::Request& request);
  void on_meta_get(call::Call& call, const memcache::Request& request, std::string_view key,
                   const memcache::MetaFlags& flags);
  void on_meta_set(call::Call& call, const memcache::Request& request, std::string_view key,
                   const memcache::MetaFlags& flags);
  void on_meta_delete(call::Call& call, const memcache::Request& request, std::string_view key,
                      const memcache::MetaFlags& flags);
  void on_meta_arith(call::Call& call, const memcache::Request& request, std::string_view key,
                     const memcache::MetaFlags& flags);
  void on_meta_debug(call::Call& call, std::string_view key);
  void add_item_flags(const store::ItemView& item, const memcache::MetaFlags& flags);
  void add_exptime(store::Instant exptime);
  void add_key(std::string_view key, bool is_base64);
  void add_echoes(const memcache::MetaFlags& flags, char letter, std::string_view key,
                  bool is_base64);
  void add_request_echoes(const memcache::Request& request, const memcache::MetaFlags& flags);
  void answer_number(call::Call& call, std::string_view key, const memcache::MetaFlags& flags,
                     const store::ArithResult& result);

  // Storing, in one step or more.
  void run_storage(call::Call& call, const memcache::Request& request, const StorageOrder& order);
  void begin_upload(call::Call& call, const StorageOrder& order, std::uint64_t value_bytes);
  void finish_upload(call::Call& call, Upload& upload);
  void answer_stored(call::Call& call, const StorageOrder& order, const store::StoreResult& result);
  memcache::ReplyCode compose_stored(const call::Call& call, const StorageOrder& order,
                                     const store::StoreResult& result);
  memcache::ReplyCode compose_meta_stored(const StorageOrder& order,
                                          const store::StoreResult& result);
  void count_arith(store::ArithStatus status, bool is_decrement);
  void count_stored(const StorageOrder& order, const store::StoreResult& result);

  // Replies in parts.
  void continue_retrieval(call::Call& call, Retrieval* retrieval, Delivery* delivery);
  void look_up(std::string_view key, Retrieval& retrieval, call::Call& call, Delivery*& delivery);
  void count_read(const store::ReadResult& result, bool is_touch);
  bool send_value(Delivery& delivery);
  static call::Flow send_part(call::Call& call, Retrieval& retrieval, std::string_view bytes,
                              bool is_last);
  Delivery& need_delivery(call::Call& call, Delivery*& delivery);
  void release(Delivery& delivery) noexcept;
  void release(Upload& upload) noexcept;

  void answer_text(call::Call& call, memcache::ReplyCode code);

  store::Store& store_;
  StoreTargetOptions options_;
  StoreEvents events_;
  std::vector<std::unique_ptr<StoreDump>> dumps_;  // On their way.
  store::Instant now_{1};
  StoreCommandStats stats_;
  base::SlabPool deliveries_;
  base::SlabPool uploads_;
  ReplyText text_;
};

}  // namespace kvferry::route
