// Rules over several keys, servers and pools, checked when all keys have been read.
//
// Threads: one reader, one thread.
#pragma once

#include <map>
#include <string>

#include "config/pool_draft.h"
#include "config/reader.h"

namespace kvferry::config {

/// Who has what, over all files.
struct TakenNames {
  std::map<std::string, Position, std::less<>> pools;
  struct Address {
    std::string pool;
    Position where;
  };
  std::map<std::string, Address, std::less<>> addresses;
};

/// Settles what depends on several keys and checks the pool; its model is complete afterwards
/// unless errors were reported.
void finish_pool(PoolDraft& pool, Reader& reader, TakenNames& taken);

}  // namespace kvferry::config
