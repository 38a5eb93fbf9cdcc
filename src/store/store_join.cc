// Append and prepend where the joined value is large: done without the lock, then checked.
#include "base/check.h"
#include "store/shard.h"
#include "store/store.h"

namespace kvferry::store {

namespace {

/// How often a join is begun again because the item changed meanwhile.
constexpr int kJoinTries = 16;

std::uint64_t size_of(std::string_view part) {
  return part.size();
}
std::uint64_t size_of(const PendingValue& part) {
  return part.value_bytes();
}

bool copy_part(PendingValue& joined, std::string_view part, Instant now) {
  return joined.append(part, now);
}

bool copy_part(PendingValue& joined, const PendingValue& part, Instant now) {
  for (const Piece* piece = part.first(); piece != part.rest_piece(); piece = piece->next) {
    if (!joined.append(piece->view(), now)) {
      return false;
    }
  }
  return joined.append(part.rest(), now);
}

bool copy_base(PendingValue& joined, Shard::JoinBase& base, Instant now) {
  while (base.item.pieces.has_more()) {
    if (!joined.append(base.item.pieces.take(), now)) {
      return false;
    }
  }
  return joined.append(base.item.rest_view(), now);
}

/// One try; nullopt when the item changed meanwhile.
template <typename Part>
std::optional<StoreResult> try_join(const Store& store, Shard& shard, const Key& key,
                                    const StoreOptions& options, Part& part, Instant now) {
  const std::uint64_t part_bytes = size_of(part);
  const auto refused = [&](StoreStatus status) {
    return StoreResult{
        .status = status, .is_base64_key = options.is_base64_key, .value_bytes = part_bytes};
  };
  Shard::JoinBase base;
  shard.begin_join(key, options, now, base);
  if (base.status != StoreStatus::Stored) {
    return refused(base.status);
  }
  const std::uint64_t joined_bytes = base.item.value_bytes + part_bytes;
  if (!base.item.is_found || joined_bytes <= kInlineBytesMax) {
    // Nothing to join with any more, or too little to need this.
    return shard.store(key, options, part, now);
  }
  if (store.is_too_large(key.bytes.size(), joined_bytes)) {
    return refused(StoreStatus::TooLarge);
  }
  PendingValue joined;
  joined.begin(shard, joined_bytes);
  const bool is_append = options.mode == StoreMode::Append;
  const bool is_whole = is_append ? copy_base(joined, base, now) && copy_part(joined, part, now)
                                  : copy_part(joined, part, now) && copy_base(joined, base, now);
  return is_whole ? shard.finish_join(key, options, base, joined, now)
                  : refused(StoreStatus::NoMemory);
}

template <typename Part>
StoreResult join_parts(const Store& store, Shard& shard, const Key& key,
                       const StoreOptions& options, Part& part, Instant now) {
  for (int i = 0; i < kJoinTries; ++i) {
    const std::optional<StoreResult> result = try_join(store, shard, key, options, part, now);
    if (result.has_value()) {
      return *result;
    }
  }
  return StoreResult{.status = StoreStatus::NoMemory,
                     .is_base64_key = options.is_base64_key,
                     .value_bytes = size_of(part)};
}

}  // namespace

StoreResult Store::join(Shard& shard, const Key& key, const StoreOptions& options,
                        std::string_view part, Instant now) const {
  return join_parts(*this, shard, key, options, part, now);
}

StoreResult Store::join(Shard& shard, const Key& key, const StoreOptions& options,
                        PendingValue& part, Instant now) const {
  return join_parts(*this, shard, key, options, part, now);
}

}  // namespace kvferry::store
