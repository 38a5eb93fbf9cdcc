// Rules over several keys, servers and pools, checked when all keys have been read.
//
// Threads: one reader, one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "config/pool_draft.h"
#include "config/reader.h"

namespace kvferry::config {

/// Who has what, over all files.
struct TakenNames {
  std::map<std::string, Position, std::less<>> pools;
  struct Address {
    std::string owner;  // "pool 'a'".
    Position where;
  };
  std::map<std::string, Address, std::less<>> addresses;
};

/// What listeners have that do not say it themselves.
struct ListenDefaults {
  std::uint32_t backlog = 512;
  std::uint32_t max_clients = 0;
  bool reuse_port = false;
};

/// The listener as the program uses it.
ListenerOptions settle_listener(ListenerDraft& draft, const ListenDefaults& defaults,
                                const Reader& reader);
/// Reports listeners whose protocol the pool behind them does not speak.
void check_protocols(const std::vector<ListenerDraft>& listeners, PoolProtocol served,
                     Reader& reader);
/// Reports addresses that somebody else listens on; `owner` is "pool 'a'".
void check_addresses(const std::vector<ListenerDraft>& listeners, const std::string& owner,
                     Reader& reader, TakenNames& taken);

/// Settles what depends on several keys and checks the pool; its model is complete afterwards
/// unless errors were reported.
void finish_pool(PoolDraft& pool, Reader& reader, TakenNames& taken);

}  // namespace kvferry::config
