// What a worker lends its pools.
#pragma once

#include "call/call.h"
#include "net/loop.h"
#include "pool/backend.h"

namespace kvferry::pool {

/// All of it outlives the pools.
struct PoolContext {
  net::Loop& loop;
  call::CallPool& calls;
  base::MemoryBudget& budget;
  PoolEvents& events;
};

}  // namespace kvferry::pool
