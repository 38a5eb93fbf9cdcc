#include "store/snapshot_writer.h"

#include <algorithm>

#include "base/check.h"

namespace kvferry::store {

SnapshotWriter::SnapshotWriter(SnapshotSink& sink, const SnapshotHead& head) : sink_(sink) {
  payload_.reserve(kSnapshotPayloadBytesMax);
  const SnapshotHeader header = compose_snapshot_header(head);
  write({header.data(), header.size()});
}

void SnapshotWriter::add(const SnapshotItem& item) {
  KVF_CHECK(value_bytes_left_ == 0 && !item.key.empty() && item.key.size() <= kKeyBytesMax &&
            item.value_bytes <= kSnapshotValueBytesMax);
  std::array<char, kSnapshotItemHeadBytes> head{};
  head[0] = static_cast<char>(item.marks);
  head[1] = static_cast<char>(static_cast<unsigned char>(item.key.size()));
  put_number(head.data() + 4, item.value_bytes);
  put_number(head.data() + 8, item.client_flags);
  put_number(head.data() + 12, item.exptime.get());
  put_number(head.data() + 16, item.cas);
  append({head.data(), head.size()});
  append(item.key);
  value_bytes_left_ = item.value_bytes;
  ++items_;
}

void SnapshotWriter::add_value(std::string_view bytes) {
  KVF_CHECK(bytes.size() <= value_bytes_left_);
  value_bytes_left_ -= bytes.size();
  append(bytes);
}

void SnapshotWriter::finish() {
  KVF_CHECK(value_bytes_left_ == 0);
  if (!payload_.empty()) {
    write_block(SnapshotBlock::Items, payload_);
    payload_.clear();
  }
  std::array<char, kSnapshotEndBytes> end{};
  put_number(end.data(), items_);
  put_number(end.data() + 8, item_bytes_);
  write_block(SnapshotBlock::End, {end.data(), end.size()});
}

void SnapshotWriter::append(std::string_view bytes) {
  item_bytes_ += bytes.size();
  while (!bytes.empty()) {
    const std::string_view part = bytes.substr(0, kSnapshotPayloadBytesMax - payload_.size());
    payload_.append(part);
    bytes.remove_prefix(part.size());
    if (payload_.size() == kSnapshotPayloadBytesMax) {
      write_block(SnapshotBlock::Items, payload_);
      payload_.clear();
    }
  }
}

void SnapshotWriter::write_block(SnapshotBlock kind, std::string_view payload) {
  const SnapshotBlockHead head = compose_snapshot_block_head(kind, blocks_++, payload);
  write({head.data(), head.size()});
  write(payload);
}

void SnapshotWriter::write(std::string_view bytes) {
  has_failed_ = has_failed_ || !sink_.write(bytes);
}

}  // namespace kvferry::store
