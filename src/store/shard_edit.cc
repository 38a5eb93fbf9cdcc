// What a shard does with items that were looked at before, without its lock.
#include <cstring>
#include <utility>

#include "store/new_record.h"
#include "store/shard.h"

namespace kvferry::store {

void Shard::fill_copy(const Record& record, ItemCopy& copy) {
  const std::string_view rest = record.inline_value();
  copy.is_found = true;
  copy.is_base64_key = record.has(kBase64Key);
  copy.client_flags = record.client_flags();
  copy.exptime = record.exptime();
  copy.value_bytes = record.value_bytes();
  rest.copy(copy.rest.data(), rest.size());
  copy.first_piece = record.has(kLarge) ? record.first_piece() : nullptr;
  if (copy.first_piece != nullptr) {
    copy.pieces = pin(*this, copy.first_piece);
  }
}

bool Shard::has_same_value(const Record& record, const ItemCopy& copy) {
  // Pinned pieces cannot have become another value's, and the rest is compared itself.
  return record.value_bytes() == copy.value_bytes &&
         (record.has(kLarge) ? record.first_piece() : nullptr) == copy.first_piece &&
         record.inline_value() == copy.rest_view();
}

bool Shard::is_same(const Slot& slot, const ItemCopy& copy) {
  if (!slot || !copy.is_found) {
    return !slot && !copy.is_found;
  }
  const Record& record = slot.record();
  return record.exptime() == copy.exptime && record.client_flags() == copy.client_flags &&
         has_same_value(record, copy);
}

void Shard::copy(const Key& key, Instant now, ItemCopy& copy) {
  copy.pieces.release();  // Takes the lock itself.
  copy.is_found = false;
  const ShardGuard guard(lock_);
  on_time(now);
  Miss miss{};
  Slot slot = find(key, now, miss);
  if (!slot) {
    return;
  }
  fill_copy(slot.record(), copy);
  slot.record().set(kFetched);
  use(slot, now);
}

EditStatus Shard::replace(const Key& key, const ItemCopy& copy, const EditOptions& options,
                          std::string_view value, Instant now) {
  return edit(key, copy, options, NewRecord{.value_bytes = value.size(), .inline_value = value},
              now);
}

EditStatus Shard::replace(const Key& key, const ItemCopy& copy, const EditOptions& options,
                          PendingValue& value, Instant now) {
  const EditStatus status = edit(key, copy, options,
                                 NewRecord{.value_bytes = value.value_bytes(),
                                           .inline_value = value.rest(),
                                           .pieces = value.first()},
                                 now);
  if (status == EditStatus::Done) {
    if (Piece* const spare = value.release_to_item(); spare != nullptr) {
      release_pieces(spare);
    }
  }
  return status;
}

EditStatus Shard::edit(const Key& key, const ItemCopy& copy, const EditOptions& options,
                       NewRecord item, Instant now) {
  const ShardGuard guard(lock_);
  on_time(now);
  Miss miss{};
  const Slot slot = find(key, now, miss);
  if (!is_same(slot, copy)) {
    return EditStatus::Changed;
  }
  item.client_flags = options.client_flags;
  item.exptime = options.exptime;
  item.cas = cas_or_next(0);
  item.marks =
      slot ? static_cast<std::uint8_t>(slot.record().item_marks() & kBase64Key) : std::uint8_t{0};
  return put(key, slot, item, now) ? EditStatus::Done : EditStatus::NoMemory;
}

EditStatus Shard::remove_copied(const Key& key, const ItemCopy& copy, Instant now) {
  const ShardGuard guard(lock_);
  on_time(now);
  Miss miss{};
  const Slot slot = find(key, now, miss);
  if (!is_same(slot, copy)) {
    return EditStatus::Changed;
  }
  if (slot) {
    space_.remove(key, slot);
  }
  return EditStatus::Done;
}

EditStatus Shard::set_exptime(const Key& key, const ItemCopy& copy, Instant exptime, Instant now) {
  const ShardGuard guard(lock_);
  on_time(now);
  Miss miss{};
  const Slot slot = find(key, now, miss);
  if (!slot || !is_same(slot, copy)) {
    return EditStatus::Changed;
  }
  return give_exptime(key, slot, exptime, now) ? EditStatus::Done : EditStatus::NoMemory;
}

}  // namespace kvferry::store
