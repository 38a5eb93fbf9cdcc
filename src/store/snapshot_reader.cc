#include "store/snapshot_reader.h"

#include <algorithm>
#include <utility>

namespace kvferry::store {

namespace {

constexpr std::size_t kHeaderChecksumAt = kSnapshotHeaderBytes - sizeof(std::uint64_t);

std::string number(std::uint64_t value) {
  return std::to_string(value);
}

}  // namespace

bool SnapshotReader::fail(std::uint64_t at, std::string text) {
  phase_ = Phase::Failed;
  error_ = SnapshotError{.at = at, .text = std::move(text)};
  return false;
}

std::size_t SnapshotReader::wanted_bytes() const noexcept {
  switch (phase_) {
    case Phase::Header:
      return kSnapshotHeaderBytes;
    case Phase::BlockHead:
      return kSnapshotBlockHeadBytes;
    case Phase::Payload:
      return payload_bytes_;
    case Phase::Done:
    case Phase::Failed:
      break;
  }
  return 0;
}

bool SnapshotReader::take(std::string_view bytes) {
  while (!bytes.empty()) {
    if (phase_ == Phase::Failed) {
      return false;
    }
    if (phase_ == Phase::Done) {
      return fail(taken_bytes_, "there are bytes behind the end of the snapshot");
    }
    const std::size_t wanted = wanted_bytes();
    if (piece_.empty() && bytes.size() >= wanted) {
      const std::string_view piece = bytes.substr(0, wanted);
      bytes.remove_prefix(wanted);
      if (!on_piece(piece)) {
        return false;
      }
      continue;
    }
    const std::string_view part = bytes.substr(0, wanted - piece_.size());
    piece_.append(part);
    bytes.remove_prefix(part.size());
    if (piece_.size() == wanted) {
      const bool is_good = on_piece(piece_);
      piece_.clear();
      if (!is_good) {
        return false;
      }
    }
  }
  return true;
}

bool SnapshotReader::on_piece(std::string_view piece) {
  bool is_good = false;
  switch (phase_) {
    case Phase::Header:
      is_good = on_header(piece);
      break;
    case Phase::BlockHead:
      is_good = on_block_head(piece);
      break;
    case Phase::Payload:
      is_good = on_payload(piece);
      break;
    case Phase::Done:
    case Phase::Failed:
      break;
  }
  taken_bytes_ += is_good ? piece.size() : 0;
  return is_good;
}

bool SnapshotReader::on_header(std::string_view header) {
  if (!header.starts_with(kSnapshotMagic)) {
    return fail(0, "this is no snapshot of kvferry, which begins with KVFSNAP");
  }
  const auto version = get_number<std::uint32_t>(header.data() + 8);
  if (version != kSnapshotVersion) {
    return fail(8, "the snapshot has version " + number(version) + "; this program reads version " +
                       number(kSnapshotVersion));
  }
  const auto header_bytes = get_number<std::uint32_t>(header.data() + 12);
  if (header_bytes != kSnapshotHeaderBytes) {
    return fail(12, "the header says that it has " + number(header_bytes) + " bytes; allowed are " +
                        number(kSnapshotHeaderBytes));
  }
  if (get_number<std::uint64_t>(header.data() + kHeaderChecksumAt) !=
      snapshot_header_checksum(header.substr(0, kHeaderChecksumAt))) {
    return fail(kHeaderChecksumAt, "the header is damaged: its checksum does not fit");
  }
  handler_.on_head({.written_at = Instant{get_number<std::uint32_t>(header.data() + 16)},
                    .last_cas = get_number<std::uint64_t>(header.data() + 24)});
  phase_ = Phase::BlockHead;
  return true;
}

bool SnapshotReader::on_block_head(std::string_view head) {
  // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): a number has its size by its type
  kind_ = get_number<std::uint32_t>(head.data());
  payload_bytes_ = get_number<std::uint32_t>(head.data() + 4);
  checksum_ = get_number<std::uint64_t>(head.data() + 8);
  const bool is_end = kind_ == static_cast<std::uint32_t>(SnapshotBlock::End);
  if (!is_end && kind_ != static_cast<std::uint32_t>(SnapshotBlock::Items)) {
    return fail(taken_bytes_, "block " + number(blocks_) + " is of kind " + number(kind_) +
                                  "; allowed are 1 (items) and 2 (the end)");
  }
  const std::size_t least = is_end ? kSnapshotEndBytes : 1;
  const std::size_t most = is_end ? kSnapshotEndBytes : kSnapshotPayloadBytesMax;
  if (payload_bytes_ < least || payload_bytes_ > most) {
    return fail(taken_bytes_ + 4, "block " + number(blocks_) + " says that it has " +
                                      number(payload_bytes_) + " bytes; allowed are " +
                                      number(least) + " to " + number(most));
  }
  phase_ = Phase::Payload;
  return true;
}

bool SnapshotReader::on_payload(std::string_view payload) {
  if (snapshot_block_checksum(kind_, blocks_, payload) != checksum_) {
    return fail(taken_bytes_ - 8,
                "block " + number(blocks_) + " is damaged: its checksum does not fit");
  }
  const bool is_end = kind_ == static_cast<std::uint32_t>(SnapshotBlock::End);
  if (!(is_end ? on_end(payload) : on_items(payload))) {
    return false;
  }
  ++blocks_;
  phase_ = is_end ? Phase::Done : Phase::BlockHead;
  return true;
}

bool SnapshotReader::on_end(std::string_view payload) {
  // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): a number has its size by its type
  const auto items = get_number<std::uint64_t>(payload.data());
  const auto item_bytes = get_number<std::uint64_t>(payload.data() + 8);
  if (item_phase_ != ItemPhase::Head || !item_piece_.empty()) {
    return fail(taken_bytes_, "the snapshot ends within item " + number(items_));
  }
  if (items != items_ || item_bytes != item_bytes_) {
    return fail(taken_bytes_, "the end says " + number(items) + " items of " + number(item_bytes) +
                                  " bytes; there were " + number(items_) + " of " +
                                  number(item_bytes_));
  }
  return true;
}

bool SnapshotReader::on_items(std::string_view payload) {
  std::string_view rest = payload;
  while (!rest.empty()) {
    if (item_phase_ == ItemPhase::Value) {
      const std::string_view part = rest.substr(0, value_left_);
      handler_.on_value(part);
      value_left_ -= static_cast<std::uint32_t>(part.size());
      rest.remove_prefix(part.size());
      if (value_left_ == 0) {
        end_item();
      }
      continue;
    }
    const std::size_t wanted = item_phase_ == ItemPhase::Head ? kSnapshotItemHeadBytes : key_bytes_;
    const std::string_view part = rest.substr(0, wanted - item_piece_.size());
    item_piece_.append(part);
    rest.remove_prefix(part.size());
    if (item_piece_.size() < wanted) {
      break;
    }
    if (item_phase_ == ItemPhase::Head) {
      const auto done = static_cast<std::uint64_t>(payload.size() - rest.size());
      const std::uint64_t end = taken_bytes_ + done;
      if (!on_item_head(item_piece_, end - std::min<std::uint64_t>(done, wanted))) {
        return false;
      }
    } else {
      item_.key = item_piece_;
      handler_.on_item(item_);
      item_phase_ = ItemPhase::Value;
      if (value_left_ == 0) {
        end_item();
      }
    }
    item_piece_.clear();
  }
  item_bytes_ += payload.size();
  return true;
}

bool SnapshotReader::on_item_head(std::string_view head, std::uint64_t at) {
  const auto marks = static_cast<std::uint8_t>(head[0]);
  key_bytes_ = static_cast<unsigned char>(head[1]);
  value_left_ = get_number<std::uint32_t>(head.data() + 4);
  if ((marks & ~kSnapshotMarks) != 0 || get_number<std::uint16_t>(head.data() + 2) != 0) {
    return fail(at, "item " + number(items_) + " has marks that this program does not know");
  }
  if (key_bytes_ == 0 || key_bytes_ > kKeyBytesMax) {
    return fail(at + 1, "the key of item " + number(items_) + " has " + number(key_bytes_) +
                            " bytes; allowed are 1 to " + number(kKeyBytesMax));
  }
  if (value_left_ > kSnapshotValueBytesMax) {
    return fail(at + 4, "the value of item " + number(items_) + " has " + number(value_left_) +
                            " bytes; allowed are up to " + number(kSnapshotValueBytesMax));
  }
  item_ = SnapshotItem{.key = {},
                       .cas = get_number<std::uint64_t>(head.data() + 16),
                       .value_bytes = value_left_,
                       .client_flags = get_number<std::uint32_t>(head.data() + 8),
                       .exptime = Instant{get_number<std::uint32_t>(head.data() + 12)},
                       .marks = marks};
  item_phase_ = ItemPhase::Key;
  return true;
}

void SnapshotReader::end_item() {
  handler_.on_item_end();
  ++items_;
  item_phase_ = ItemPhase::Head;
}

bool SnapshotReader::finish() {
  if (phase_ == Phase::Failed) {
    return false;
  }
  if (phase_ != Phase::Done) {
    const std::uint64_t end = taken_bytes_ + piece_.size();
    return fail(end, "the snapshot is cut off: it has " + number(end) + " bytes and no end");
  }
  return true;
}

}  // namespace kvferry::store
