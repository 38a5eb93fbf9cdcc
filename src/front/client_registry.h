// ClientRegistry: the clients of Redis that the process has, over all workers, for the CLIENT
// commands.
//
// A client has a card, which its worker fills in and everybody may read. To act on a client of
// another worker, work is posted to the loop that owns it. Threads:   any. A lock guards the list:
// it changes when clients come and go, and is read by CLIENT LIST and its kin only.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "net/mailbox.h"

namespace kvferry::front {

class RespClient;

/// What others may know of a client.
class ClientCard {
 public:
  struct Texts {
    std::string address;
    std::string local_address;
    std::string name;
    std::string lib_name;
    std::string lib_version;
    std::string user = "default";
  };

  ClientCard(std::uint64_t id, std::shared_ptr<net::Mailbox> owner, std::int64_t born_ms) noexcept
      : id_(id), owner_(std::move(owner)), born_ms_(born_ms), active_ms_(born_ms) {}

  std::uint64_t id() const noexcept { return id_; }

  Texts texts() const {
    const std::lock_guard lock(mutex_);
    return texts_;
  }
  void edit_texts(const std::function<void(Texts&)>& edit) {
    const std::lock_guard lock(mutex_);
    edit(texts_);
  }

  // Written by the worker at each request.
  void note_command(std::uint16_t command, std::int64_t now_ms) noexcept {
    command_.store(command, std::memory_order_relaxed);
    active_ms_.store(now_ms, std::memory_order_relaxed);
  }
  void note_database(std::uint32_t database) noexcept {
    database_.store(database, std::memory_order_relaxed);
  }
  void note_version(std::uint8_t version) noexcept {
    version_.store(version, std::memory_order_relaxed);
  }
  /// How many commands wait for EXEC; -1: there is no transaction.
  void note_queued(std::int32_t commands) noexcept {
    queued_.store(commands, std::memory_order_relaxed);
  }

  std::uint16_t command() const noexcept { return command_.load(std::memory_order_relaxed); }
  std::int64_t born_ms() const noexcept { return born_ms_; }
  std::int64_t active_ms() const noexcept { return active_ms_.load(std::memory_order_relaxed); }
  std::uint32_t database() const noexcept { return database_.load(std::memory_order_relaxed); }
  std::uint8_t version() const noexcept { return version_.load(std::memory_order_relaxed); }
  std::int32_t queued() const noexcept { return queued_.load(std::memory_order_relaxed); }

  /// Runs `work` on the worker that owns the client of `card`, unless the client is gone by then.
  static void post(const std::shared_ptr<ClientCard>& card, std::function<void(RespClient&)> work);
  /// Owning worker: whom the card is about; null when it is gone.
  void set_client(RespClient* client) noexcept { client_ = client; }

 private:
  const std::uint64_t id_;
  const std::shared_ptr<net::Mailbox> owner_;
  const std::int64_t born_ms_;
  std::atomic<std::int64_t> active_ms_;
  std::atomic<std::uint32_t> database_{0};
  std::atomic<std::int32_t> queued_{-1};
  std::atomic<std::uint16_t> command_{0};
  std::atomic<std::uint8_t> version_{2};
  mutable std::mutex mutex_;
  Texts texts_;
  RespClient* client_ = nullptr;  // The owning worker's alone.
};

class ClientRegistry {
 public:
  /// The card of a client that has come; numbers grow and are never used twice.
  std::shared_ptr<ClientCard> enter(std::shared_ptr<net::Mailbox> owner, std::int64_t now_ms);
  void leave(const ClientCard& card);
  /// All that are there, in the order in which they came.
  std::vector<std::shared_ptr<ClientCard>> list() const;
  std::shared_ptr<ClientCard> find(std::uint64_t id) const;

 private:
  mutable std::mutex mutex_;
  std::uint64_t last_id_ = 0;
  std::map<std::uint64_t, std::shared_ptr<ClientCard>> cards_;
};

}  // namespace kvferry::front
