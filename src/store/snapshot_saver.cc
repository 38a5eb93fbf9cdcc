#include "store/snapshot_saver.h"

namespace kvferry::store {

namespace {

std::uint8_t marks_of(const ItemView& item) {
  return static_cast<std::uint8_t>(
      (item.was_fetched ? kSnapshotFetched : 0) | (item.is_stale ? kSnapshotStale : 0) |
      (item.was_won ? kSnapshotWon : 0) | (item.is_base64_key ? kSnapshotBase64Key : 0));
}

}  // namespace

SnapshotSaver::SnapshotSaver(Store& store, SnapshotSink& sink, Instant now)
    : store_(store),
      writer_(sink, SnapshotHead{.written_at = now, .last_cas = store.last_cas()}),
      now_(now) {}

bool SnapshotSaver::step() {
  bytes_.clear();
  staged_.clear();
  const bool goes_on = store_.walk(place_, now_, ItemVisitor::to<&SnapshotSaver::on_item>(this));
  for (Staged& staged : staged_) {
    write(staged);
  }
  if (!goes_on && !writer_.has_failed()) {
    writer_.finish();
  }
  return goes_on && !writer_.has_failed();
}

void SnapshotSaver::on_item(const ItemView& item) {
  if (item.value_bytes > kSnapshotValueBytesMax) {
    return;
  }
  Staged staged{.item = {.key = {},
                         .cas = item.cas,
                         .value_bytes = item.value_bytes,
                         .client_flags = item.client_flags,
                         .exptime = item.exptime,
                         .marks = marks_of(item)},
                .key_at = bytes_.size(),
                .key_bytes = item.key.size(),
                .rest_at = bytes_.size() + item.key.size(),
                .rest_bytes = item.value.size(),
                .pieces = {}};
  if (item.is_large) {
    staged.pieces = item.pin();
  }
  bytes_.append(item.key).append(item.value);
  staged_.push_back(std::move(staged));
}

void SnapshotSaver::write(Staged& staged) {
  const std::string_view bytes = bytes_;
  staged.item.key = bytes.substr(staged.key_at, staged.key_bytes);
  writer_.add(staged.item);
  while (staged.pieces.has_more()) {
    writer_.add_value(staged.pieces.take());
  }
  writer_.add_value(bytes.substr(staged.rest_at, staged.rest_bytes));
}

}  // namespace kvferry::store
