// Layout of an item in memory.
//
//   0     5         8        10          11      12
//   +-----+---------+--------+-----------+-------+------+
//   | CAS | used at | length | key bytes | marks | body |
//   +-----+---------+--------+-----------+-------+------+
//   body: [CAS, its top 4] [client flags 4] [exptime 4] key
//         [value bytes 4, first piece 8] value (or what the pieces leave of it)
//
// What stands in brackets is there only when an item needs it, and marks say so: client flags and
// exptime when they are not 0, the top of a CAS above 2^40, the last two when a value has pieces.
// The length is that of the bytes here, with marks in its top bits. The time of the last access is
// kept modulo 2^24 seconds, so one that is half a year ago is forgotten.
//
// Records are multiples of kRecordAlignBytes long and lie one behind the other in the segments of a
// log, without any link or allocator word; nothing in the head but the marks is something that the
// protocol does not ask for. An item whose value has moved to flash will set a mark in the top bits
// of the length, and keep the place of its value where the first piece is.
// Threads: guarded by the lock of the shard.
#pragma once

#include <array>
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
/// Marks that say what an item is, not how its record looks.
inline constexpr std::uint8_t kItemMarks = kFetched | kStale | kWon | kBase64Key;

inline constexpr std::size_t kRecordAlignBytes = 4;
/// Where a CAS unique stops fitting into the head.
inline constexpr std::uint64_t kWideCasMin = std::uint64_t{1} << 40;

/// What determines the length of a record.
struct RecordShape {
  std::size_t key_bytes;
  std::size_t value_bytes;
  bool has_flags;
  bool has_exptime;
  bool has_wide_cas;
};

class Record {
 public:
  static constexpr std::size_t kHeadBytes = 12;
  /// In front of the first piece.
  static constexpr std::size_t kLargeBytes = sizeof(std::uint32_t) + sizeof(Piece*);

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
    const std::size_t fields = (shape.has_wide_cas ? kFieldBytes : 0) +
                               (shape.has_flags ? kFieldBytes : 0) +
                               (shape.has_exptime ? kFieldBytes : 0);
    const std::size_t bytes = kHeadBytes + fields + shape.key_bytes +
                              inline_bytes_of(shape.value_bytes) +
                              (is_large_value(shape.value_bytes) ? kLargeBytes : 0);
    return (bytes + kRecordAlignBytes - 1) & ~(kRecordAlignBytes - 1);
  }

  /// Makes this a record of `shape` with no other marks; what its fields hold is still to be said.
  void begin(const RecordShape& shape) noexcept {
    key_bytes_ = static_cast<std::uint8_t>(shape.key_bytes);
    const bool is_large = is_large_value(shape.value_bytes);
    length_ = static_cast<std::uint16_t>(inline_bytes_of(shape.value_bytes) |
                                         (shape.has_wide_cas ? kWideCas : 0));
    marks_ =
        static_cast<std::uint8_t>((shape.has_flags ? kHasFlags : 0) |
                                  (shape.has_exptime ? kHasExptime : 0) | (is_large ? kLarge : 0));
    if (is_large) {
      set_word_at(large_at(), static_cast<std::uint32_t>(shape.value_bytes));
    }
  }

  bool has(std::uint8_t mark) const noexcept { return (marks_ & mark) != 0; }
  void set(std::uint8_t mark) noexcept { marks_ = static_cast<std::uint8_t>(marks_ | mark); }
  void clear(std::uint8_t mark) noexcept { marks_ = static_cast<std::uint8_t>(marks_ & ~mark); }
  /// Those of kItemMarks.
  std::uint8_t item_marks() const noexcept { return marks_ & kItemMarks; }

  std::uint64_t cas() const noexcept {
    const std::uint64_t low = std::uint64_t{cas_high_} << 32 | cas_low_;
    return has_wide_cas() ? std::uint64_t{word_at(0)} << 40 | low : low;
  }
  /// Whether set_cas() may be given `cas`; a record has the field for its top or not.
  bool fits_cas(std::uint64_t cas) const noexcept { return has_wide_cas() || cas < kWideCasMin; }
  void set_cas(std::uint64_t cas) noexcept {
    cas_low_ = static_cast<std::uint32_t>(cas);
    cas_high_ = static_cast<std::uint8_t>(cas >> 32);
    if (has_wide_cas()) {
      set_word_at(0, static_cast<std::uint32_t>(cas >> 40));
    }
  }

  /// Seconds since the last access. 0 also when the clock has been set back, by up to a day.
  std::uint32_t idle_seconds(Instant now) const noexcept {
    constexpr std::uint32_t kBackMax = 86'400;
    const std::uint32_t used_at =
        used_at_[0] | std::uint32_t{used_at_[1]} << 8 | std::uint32_t{used_at_[2]} << 16;
    const std::uint32_t idle = (now.get() - used_at) & kUsedAtMask;
    return idle <= kUsedAtMask - kBackMax ? idle : 0;
  }
  void set_used_at(Instant now) noexcept {
    used_at_ = {static_cast<std::uint8_t>(now.get()), static_cast<std::uint8_t>(now.get() >> 8),
                static_cast<std::uint8_t>(now.get() >> 16)};
  }

  std::size_t value_bytes() const noexcept {
    return has(kLarge) ? word_at(large_at()) : inline_bytes();
  }
  RecordShape shape() const noexcept {
    return {key_bytes_, value_bytes(), has(kHasFlags), has(kHasExptime), has_wide_cas()};
  }
  std::size_t total_bytes() const noexcept {
    return (kHeadBytes + inline_at() + inline_bytes() + kRecordAlignBytes - 1) &
           ~(kRecordAlignBytes - 1);
  }
  std::size_t pieces_bytes() const noexcept {
    return has(kLarge) ? pieces_of(value_bytes()) * kPieceTotalBytes : 0;
  }
  /// Memory that goes with this item, pieces included.
  std::size_t footprint_bytes() const noexcept { return total_bytes() + pieces_bytes(); }

  std::uint32_t client_flags() const noexcept { return has(kHasFlags) ? word_at(flags_at()) : 0; }
  Instant exptime() const noexcept {
    return has(kHasExptime) ? Instant{word_at(exptime_at())} : kNever;
  }
  /// The record must have the field.
  void set_client_flags(std::uint32_t flags) noexcept { set_word_at(flags_at(), flags); }
  void set_exptime(Instant exptime) noexcept { set_word_at(exptime_at(), exptime.get()); }
  /// Makes a field for an exptime where there is none; the record's length must have room for it.
  void insert_exptime() noexcept {
    char* const at = body() + key_at();
    std::memmove(at + kFieldBytes, at, inline_at() + inline_bytes() - key_at());
    set(kHasExptime);
  }

  /// Takes over everything that `old` has, which is of the same key and value; this one may have
  /// more fields.
  void copy_from(const Record& old) noexcept {
    set(old.item_marks());
    used_at_ = old.used_at_;
    set_cas(old.cas());
    if (has(kHasFlags)) {
      set_client_flags(old.client_flags());
    }
    if (has(kHasExptime)) {
      set_exptime(old.exptime());
    }
    // Key, first piece and value lie behind each other in both.
    std::memcpy(body() + key_at(), old.body() + old.key_at(),
                old.inline_at() + old.inline_bytes() - old.key_at());
  }

  std::string_view key() const noexcept { return {body() + key_at(), key_bytes_}; }
  void set_key(std::string_view key) noexcept { key.copy(body() + key_at(), key.size()); }

  Piece* first_piece() const noexcept {
    Piece* piece = nullptr;
    std::memcpy(&piece, body() + large_at() + sizeof(std::uint32_t), sizeof(piece));
    return piece;
  }
  void set_first_piece(Piece* piece) noexcept {
    std::memcpy(body() + large_at() + sizeof(std::uint32_t), &piece, sizeof(piece));
  }
  /// The bytes of the value that lie here: all, or what the pieces leave.
  std::string_view inline_value() const noexcept { return {body() + inline_at(), inline_bytes()}; }
  char* inline_value_begin() noexcept { return body() + inline_at(); }

 private:
  static constexpr std::size_t kFieldBytes = sizeof(std::uint32_t);
  static constexpr std::uint32_t kUsedAtMask = (1U << 24) - 1;
  // What the length holds.
  static constexpr std::uint16_t kLengthMask = 0x1fff;
  static constexpr std::uint16_t kWideCas = 0x2000;
  static_assert(kInlineBytesMax <= kLengthMask);

  bool has_wide_cas() const noexcept { return (length_ & kWideCas) != 0; }
  std::size_t inline_bytes() const noexcept { return length_ & kLengthMask; }

  char* body() noexcept { return reinterpret_cast<char*>(this) + kHeadBytes; }
  const char* body() const noexcept { return reinterpret_cast<const char*>(this) + kHeadBytes; }
  std::size_t flags_at() const noexcept { return has_wide_cas() ? kFieldBytes : 0; }
  std::size_t exptime_at() const noexcept {
    return flags_at() + (has(kHasFlags) ? kFieldBytes : 0);
  }
  std::size_t key_at() const noexcept {
    return exptime_at() + (has(kHasExptime) ? kFieldBytes : 0);
  }
  std::size_t large_at() const noexcept { return key_at() + key_bytes_; }
  std::size_t inline_at() const noexcept { return large_at() + (has(kLarge) ? kLargeBytes : 0); }
  std::uint32_t word_at(std::size_t at) const noexcept {
    std::uint32_t word = 0;
    std::memcpy(&word, body() + at, sizeof(word));
    return word;
  }
  void set_word_at(std::size_t at, std::uint32_t word) noexcept {
    std::memcpy(body() + at, &word, sizeof(word));
  }

  std::uint32_t cas_low_;
  std::uint8_t cas_high_;
  std::array<std::uint8_t, 3> used_at_;
  std::uint16_t length_;
  std::uint8_t key_bytes_;
  std::uint8_t marks_;
};
static_assert(sizeof(Record) == Record::kHeadBytes);

/// The longest record: all fields, the longest key, the longest inline value.
inline constexpr std::size_t kRecordBytesMax =
    Record::total_bytes_of({kKeyBytesMax, kInlineBytesMax, true, true, true}) + Record::kLargeBytes;

}  // namespace kvferry::store
