// ItemCopy: an item as it was at one moment, so that a new value can be made of it without the lock
// of its shard. What is then stored is refused when the item has changed meanwhile.
//
//   copy() -> look, make the new value -> replace(), remove_copied() or set_exptime()
//     ^                                        |
//     +------------- Changed ------------------+
//
// Lifetime: pins the pieces of a large value; does not outlive the store.
// Threads:  a value; one user at a time.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "store/instant.h"
#include "store/item_ref.h"
#include "store/record.h"

namespace kvferry::store {

// NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): `rest` is filled as far as it is used
struct ItemCopy {
  bool is_found = false;
  bool is_base64_key = false;
  std::uint32_t client_flags = 0;
  Instant exptime = kNever;
  std::uint64_t value_bytes = 0;
  Piece* first_piece = nullptr;  // Of a large value; pinned by `pieces`.
  ItemRef pieces;
  std::array<char, kInlineBytesMax> rest;  // The bytes that lie in the record; the others unset.

  std::string_view rest_view() const noexcept {
    return {rest.data(), Record::inline_bytes_of(static_cast<std::size_t>(value_bytes))};
  }
};

/// What is stored in the place of a copied item, besides the value.
struct EditOptions {
  std::uint32_t client_flags = 0;
  Instant exptime = kNever;
};

enum class EditStatus : std::uint8_t {
  Done,
  Changed,  // The item is not what the copy says; nothing was done.
  TooLarge,
  NoMemory,
};

}  // namespace kvferry::store
