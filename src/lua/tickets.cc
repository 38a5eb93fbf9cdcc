#include "lua/tickets.h"

#include "lua/boxes.h"
#include "lua/script_slot.h"
#include "lua/worker_state.h"

namespace kvferry::lua {

std::optional<Ticket> TicketBook::issue(ScriptSlot& slot) {
  if (free_.empty()) {
    if (entries_.size() >= numbers_max_) {
      return std::nullopt;
    }
    free_.push_back(static_cast<std::uint32_t>(entries_.size()));
    entries_.emplace_back();
  }
  const std::uint32_t number = free_.back();
  free_.pop_back();
  entries_[number].slot = &slot;
  return Ticket(number, entries_[number].serial);
}

void TicketBook::withdraw(Ticket ticket) {
  Entry& entry = entries_[ticket.number()];
  entry.slot = nullptr;
  if (!ticket.is_last()) {
    entry.serial = ticket.next().serial();
    free_.push_back(ticket.number());
  }
}

Ticket TicketBook::renew_worn(Ticket ticket, ScriptSlot& slot) {
  if (const std::optional<Ticket> fresh = issue(slot)) {
    withdraw(ticket);
    return *fresh;
  }
  // After 2^51 requests.
  return {ticket.number(), 0};
}

ScriptSlot* slot_of(lua_State* lua, Ticket ticket) {
  const auto& state = Vm::owner_of<WorkerState>(lua);
  ScriptSlot* const running = state.running_slot();
  if (running != nullptr && running->ticket().is_same_turn(ticket)) [[likely]] {
    return running;
  }
  if (ticket.is_foreign()) {
    return nullptr;
  }
  ScriptSlot* const holder = state.tickets().holder_of(ticket);
  return holder != nullptr && holder->ticket().is_same_turn(ticket) ? holder : nullptr;
}

namespace {

/// Of requests the line, as their boxes show it; the rest as Lua shows userdata.
int show(lua_State* lua) {
  const Ticket ticket = Ticket::at(lua, 1);
  if (!ticket.is_foreign() && ticket.is_request()) {
    push_text(lua, check_request(lua, 1).line_text());
  } else {
    lua_pushfstring(lua, "%s: %p", ticket.is_foreign() ? "userdata" : kReplyType,
                    lua_topointer(lua, 1));
  }
  return 1;
}

/// Adds the methods of `type` to the table at the top of the stack.
void add_methods(lua_State* lua, const char* type) {
  luaL_getmetatable(lua, type);
  lua_getfield(lua, -1, "__index");
  for (lua_pushnil(lua); lua_next(lua, -2) != 0;) {
    lua_pushvalue(lua, -2);
    lua_insert(lua, -2);
    lua_rawset(lua, -6);
  }
  lua_pop(lua, 2);
}

}  // namespace

void refuse_ticket(lua_State* lua, int index, const char* wanted) {
  const Ticket ticket = Ticket::at(lua, index);
  const char* const given = ticket.is_foreign()   ? "light userdata"
                            : ticket.is_request() ? kRequestType
                                                  : kReplyType;
  luaL_argerror(lua, index, lua_pushfstring(lua, "%s expected, got %s", wanted, given));
  __builtin_unreachable();
}

void define_tickets(lua_State* lua) {
  lua_pushlightuserdata(lua, nullptr);  // All light userdata have one metatable.
  lua_newtable(lua);
  lua_newtable(lua);
  add_methods(lua, kRequestType);
  add_methods(lua, kReplyType);
  lua_getfield(lua, -1, "close");
  lua_setfield(lua, -3, "__close");
  lua_setfield(lua, -2, "__index");
  lua_pushcfunction(lua, &show);
  lua_setfield(lua, -2, "__tostring");
  lua_setmetatable(lua, -2);
  lua_pop(lua, 1);
}

}  // namespace kvferry::lua
