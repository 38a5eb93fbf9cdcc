// Layout of an item in memory.
//
//   0        8         12            16           17      18           20
//   +--------+---------+-------------+------------+-------+------------+----------------------+
//   | CAS    | used at | value bytes | key bytes  | marks | generation | body                 |
//   +--------+---------+-------------+------------+-------+------------+----------------------+
//   body: [client flags 4] [exptime 4] key [first piece 8] value (or what the pieces leave of it)
//
// Client flags and exptime are there only when an item has them (marks say so). Records are
// multiples of 8 bytes long and lie one behind the other in the segments of a log, without any link
// or allocator word; of the 20 bytes only the generation is not something that the protocol asks
// for. The top bits of `value bytes` are free: an item whose value has moved to flash will set one,
// and keep the place of its value where the first piece is.
// Threads: guarded by the lock of the shard.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "store/instant.h"
#include "store/key.h"
#include "store/piece_set.h"

namespace kvferry::store {

enum Mark : std::uint8_t {
  kFetched = 1,      // Was read since it was stored.
  kStale = 2,        // Marked by md I or an old CAS.
  kWon = 4,          // A reader was told to recache it.
  kBase64Key = 8,    // Was stored with the key in base64.
  kLarge = 16,       // Its value begins in pieces.
  kHasFlags = 32,    // The body has client flags.
  kHasExptime = 64,  // The body has an exptime.
  kDead = 128,       // No longer in the index; the space is waiting for the segment's end.
};

/// What determines the length of a record.
struct RecordShape {
  std::size_t key_bytes;
  std::size_t value_bytes;
  bool has_flags;
  bool has_exptime;
};

struct Record {
  std::uint32_t cas_low;  // Two halves, so that the head needs no padding.
  std::uint32_t cas_high;
  std::uint32_t used_at;
  std::uint32_t value_bytes;
  std::uint8_t key_bytes;
  std::uint8_t marks;
  std::uint16_t generation;

  static constexpr std::size_t kHeadBytes = 20;

  static constexpr bool is_large_value(std::size_t bytes) noexcept {
    return bytes > kInlineBytesMax;
  }
  /// Bytes of a value of `bytes` that lie in the record.
  static constexpr std::size_t inline_bytes_of(std::size_t bytes) noexcept {
    return is_large_value(bytes) ? bytes % kPieceBytes : bytes;
  }
  static constexpr std::size_t pieces_of(std::size_t bytes) noexcept {
    return is_large_value(bytes) ? bytes / kPieceBytes : 0;
  }
  static constexpr std::size_t total_bytes_of(const RecordShape& shape) noexcept {
    const std::size_t bytes = kHeadBytes + (shape.has_flags ? 4 : 0) + (shape.has_exptime ? 4 : 0) +
                              shape.key_bytes + inline_bytes_of(shape.value_bytes) +
                              (is_large_value(shape.value_bytes) ? sizeof(Piece*) : 0);
    return (bytes + 7) & ~std::size_t{7};
  }

  bool has(std::uint8_t mark) const noexcept { return (marks & mark) != 0; }
  void set(std::uint8_t mark) noexcept { marks = static_cast<std::uint8_t>(marks | mark); }
  void clear(std::uint8_t mark) noexcept { marks = static_cast<std::uint8_t>(marks & ~mark); }

  std::uint64_t cas() const noexcept { return (std::uint64_t{cas_high} << 32) | cas_low; }
  void set_cas(std::uint64_t cas) noexcept {
    cas_low = static_cast<std::uint32_t>(cas);
    cas_high = static_cast<std::uint32_t>(cas >> 32);
  }

  RecordShape shape() const noexcept {
    return {key_bytes, value_bytes, has(kHasFlags), has(kHasExptime)};
  }
  std::size_t total_bytes() const noexcept { return total_bytes_of(shape()); }
  /// Memory that goes with this item, pieces included.
  std::size_t footprint_bytes() const noexcept {
    return total_bytes() + pieces_of(value_bytes) * kPieceTotalBytes;
  }

  std::uint32_t client_flags() const noexcept { return has(kHasFlags) ? word_at(0) : 0; }
  Instant exptime() const noexcept {
    return has(kHasExptime) ? Instant{word_at(has(kHasFlags) ? 4 : 0)} : kNever;
  }
  /// The record must have the field.
  void set_client_flags(std::uint32_t flags) noexcept { set_word_at(0, flags); }
  void set_exptime(Instant exptime) noexcept { set_word_at(has(kHasFlags) ? 4 : 0, exptime.get()); }

  std::string_view key() const noexcept { return {body() + key_at(), key_bytes}; }
  char* key_bytes_begin() noexcept { return body() + key_at(); }

  Piece* first_piece() const noexcept {
    Piece* piece = nullptr;
    std::memcpy(&piece, body() + key_at() + key_bytes, sizeof(piece));
    return piece;
  }
  void set_first_piece(Piece* piece) noexcept {
    std::memcpy(body() + key_at() + key_bytes, &piece, sizeof(piece));
  }
  /// The bytes of the value that lie here: all, or what the pieces leave.
  std::string_view inline_value() const noexcept {
    return {body() + inline_at(), inline_bytes_of(value_bytes)};
  }
  char* inline_value_begin() noexcept { return body() + inline_at(); }

 private:
  char* body() noexcept { return reinterpret_cast<char*>(this) + kHeadBytes; }
  const char* body() const noexcept { return reinterpret_cast<const char*>(this) + kHeadBytes; }
  std::size_t key_at() const noexcept {
    return (has(kHasFlags) ? std::size_t{4} : 0) + (has(kHasExptime) ? std::size_t{4} : 0);
  }
  std::size_t inline_at() const noexcept {
    return key_at() + key_bytes + (has(kLarge) ? sizeof(Piece*) : 0);
  }
  std::uint32_t word_at(std::size_t at) const noexcept {
    std::uint32_t word = 0;
    std::memcpy(&word, body() + at, sizeof(word));
    return word;
  }
  void set_word_at(std::size_t at, std::uint32_t word) noexcept {
    std::memcpy(body() + at, &word, sizeof(word));
  }
};
static_assert(sizeof(Record) == Record::kHeadBytes);

/// The longest record: all fields, the longest key, the longest inline value.
inline constexpr std::size_t kRecordBytesMax =
    Record::total_bytes_of({kKeyBytesMax, kInlineBytesMax, true, true}) + sizeof(Piece*);

}  // namespace kvferry::store
