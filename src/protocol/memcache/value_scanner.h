// Cuts the chunks of a Retrieval reply into items, so that the replies of several backends can be
// merged item by item.
//
// Source:    chunks as ReplyParser makes them: they end at line ends or inside of a value, and are
//            well formed.
// Lifetime:  views point into the chunk that was given last.
// Threads:   one scanner a reply.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kvferry::memcache {

/// What comes next in a reply.
struct ScanEvent {
  enum class Kind : std::uint8_t {
    NeedChunk,  // The chunk is used up.
    Item,       // An item begins: its header line and as much of its value as the chunk holds.
    ItemRest,   // More of the item that began in an earlier chunk.
    End,        // The line END.
    Error,      // An error line; it ends the reply.
  };
  Kind kind = Kind::NeedChunk;
  std::string_view key;           // Of an Item.
  std::string_view bytes;         // The bytes of the chunk that belong to this event.
  std::uint64_t total_bytes = 0;  // Of an Item: header line, value and its line end.
  bool is_item_complete = false;  // Of an Item or ItemRest: `bytes` reach the item's end.
};

class ValueScanner {
 public:
  /// Forgets all; a new reply begins.
  void reset() noexcept { *this = ValueScanner(); }

  /// Gives the next chunk; the one before must be used up.
  void feed(std::string_view chunk) noexcept;

  /// The next event of the chunk. What comes after End or Error belongs to another reply.
  ScanEvent next() noexcept;

 private:
  std::string_view rest_;
  std::uint64_t left_bytes_ = 0;  // Of the item in progress, its line end included.
};

}  // namespace kvferry::memcache
