// Tickets: what scripts hold of the request that a slot serves and of the replies to it: numbers
// (light userdata), which cost no memory and give the collector no work.
//
//   63   62 .. 43   42 .. 12   11 .. 0
//   1    number     serial     what       number: the slot; serial: which request of it;
//                                         what: 0 the request, else 1 + the handle of the reply
//
// When the request is over the slot takes the next serial, so a ticket that a script has kept fits
// nothing any more, and using it is an error. No other light userdata looks like a ticket:
// addresses of this process have bit 63 clear, and scripts cannot make their own.
//
// Threads: one worker.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "lua/stack.h"

namespace kvferry::lua {

class ScriptSlot;

class Ticket {
 public:
  static constexpr unsigned kWhatBits = 12;
  static constexpr unsigned kSerialBits = 31;
  static constexpr unsigned kNumberBits = 20;
  static_assert(kWhatBits + kSerialBits + kNumberBits + 1 == 64);
  /// Handles that a ticket can name.
  static constexpr std::uint32_t kHandles = (1U << kWhatBits) - 1;

  constexpr Ticket() = default;
  /// Of a request.
  constexpr Ticket(std::uint32_t number, std::uint32_t serial)
      : bits_(kMark | (std::uint64_t{number} << (kWhatBits + kSerialBits)) |
              (std::uint64_t{serial} << kWhatBits)) {}
  /// The light userdata at `index`.
  static Ticket at(lua_State* lua, int index) {
    return Ticket(std::bit_cast<std::uint64_t>(lua_touserdata(lua, index)));
  }
  /// Pushes it; takes no memory, raises nothing.
  void push(lua_State* lua) const { lua_pushlightuserdata(lua, std::bit_cast<void*>(bits_)); }

  /// Some other light userdata, not made here; or none yet.
  constexpr bool is_foreign() const { return (bits_ & kMark) == 0; }
  constexpr std::uint32_t number() const {
    return static_cast<std::uint32_t>((bits_ & ~kMark) >> (kWhatBits + kSerialBits));
  }
  constexpr std::uint32_t serial() const {
    return static_cast<std::uint32_t>(bits_ >> kWhatBits) & ((1U << kSerialBits) - 1);
  }
  constexpr bool is_request() const { return what() == 0; }
  /// Of a reply.
  constexpr std::uint32_t handle() const { return what() - 1; }
  /// The ticket of a reply to this request.
  constexpr Ticket of_reply(std::uint32_t handle) const { return Ticket(bits_ + 1 + handle); }
  /// Whether both belong to one request of one slot.
  constexpr bool is_same_turn(Ticket other) const {
    return (bits_ >> kWhatBits) == (other.bits_ >> kWhatBits);
  }
  /// Whether serials are used up.
  constexpr bool is_last() const { return serial() == (1U << kSerialBits) - 1; }
  /// That of the slot's next request; not after the last.
  constexpr Ticket next() const { return Ticket(bits_ + (std::uint64_t{1} << kWhatBits)); }

 private:
  static constexpr std::uint64_t kMark = std::uint64_t{1} << 63U;
  explicit constexpr Ticket(std::uint64_t bits) : bits_(bits) {}
  constexpr std::uint32_t what() const {
    return static_cast<std::uint32_t>(bits_) & ((1U << kWhatBits) - 1);
  }

  std::uint64_t bits_ = 0;
};

/// Who holds which number. A number that passes to another slot goes on with its serials.
class TicketBook {
 public:
  /// `numbers_max`: fewer than there are, in tests.
  explicit TicketBook(std::uint32_t numbers_max = 1U << Ticket::kNumberBits)
      : numbers_max_(numbers_max) {}

  /// A number for `slot`: the ticket of its first request. Nothing: all numbers are taken.
  std::optional<Ticket> issue(ScriptSlot& slot);
  /// `ticket` is over: that of the next request of the same slot.
  Ticket renew(Ticket ticket, ScriptSlot& slot) {
    return ticket.is_last() ? renew_worn(ticket, slot) : ticket.next();
  }
  /// The slot is going; `ticket` and all before it are over.
  void withdraw(Ticket ticket);
  /// The slot that holds the number of `ticket`, which may be on another request by now; null when
  /// none does.
  ScriptSlot* holder_of(Ticket ticket) const {
    return ticket.number() < entries_.size() ? entries_[ticket.number()].slot : nullptr;
  }

 private:
  struct Entry {
    ScriptSlot* slot = nullptr;
    std::uint32_t serial = 0;  // Of the next holder.
  };
  Ticket renew_worn(Ticket ticket, ScriptSlot& slot);

  std::uint32_t numbers_max_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> free_;
};

/// The slot whose request of now, or whose reply, `ticket` stands for; null when that is over, or
/// when it is no ticket at all.
ScriptSlot* slot_of(lua_State* lua, Ticket ticket);
/// Raises that argument `index`, which is light userdata, is no `wanted`.
[[noreturn]] void refuse_ticket(lua_State* lua, int index, const char* wanted);
/// Gives light userdata the methods of requests and replies, which are defined already.
void define_tickets(lua_State* lua);

}  // namespace kvferry::lua
