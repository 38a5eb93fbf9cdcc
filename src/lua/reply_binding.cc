#include <memory>

#include "lua/box_type.h"
#include "lua/boxes.h"
#include "lua/script_slot.h"
#include "lua/tickets.h"

namespace kvferry::lua {
namespace {

using route::RouteReply;

// As with requests, only what must be destroyed has a finalizer.
constexpr BoxType kShownReply{.name = kReplyType, .registry_name = kReplyType};
constexpr BoxType kOwnedReply{.name = kReplyType, .registry_name = "mcp.response (owned)"};

struct OwnedReply {
  ReplyBox box;
  RouteReply reply;
};
static_assert(alignof(OwnedReply) <= alignof(lua_Integer), "what Lua aligns userdata to");

constexpr std::string_view kRequestIsOver =
    "response: its request is over, it cannot be used any more";

ReplyBox* reply_box_at(lua_State* lua, int index) {
  return static_cast<ReplyBox*>(box_at(lua, index, kShownReply, kOwnedReply));
}

int destroy(lua_State* lua) {
  auto* const owned = static_cast<OwnedReply*>(box_at(lua, 1, kOwnedReply));
  // Scripts can call this too, and go on using the object.
  if (owned != nullptr && owned->box.reply != nullptr) {
    owned->box.reply = nullptr;
    owned->reply.~RouteReply();
  }
  return 0;
}

int ok(lua_State* lua) {
  lua_pushboolean(lua, check_reply(lua, 1).is_ok());
  return 1;
}

int hit(lua_State* lua) {
  lua_pushboolean(lua, check_reply(lua, 1).is_hit());
  return 1;
}

int code(lua_State* lua) {
  lua_pushinteger(lua, static_cast<lua_Integer>(check_reply(lua, 1).code()));
  return 1;
}

int value_length(lua_State* lua) {
  lua_pushinteger(lua, static_cast<lua_Integer>(check_reply(lua, 1).value_bytes()));
  return 1;
}

int push_text_or_nil(lua_State* lua, std::string_view text) {
  if (text.empty()) {
    lua_pushnil(lua);
  } else {
    push_text(lua, text);
  }
  return 1;
}

int line(lua_State* lua) {
  return push_text_or_nil(lua, check_reply(lua, 1).meta_line());
}

int raw_string(lua_State* lua) {
  return push_text_or_nil(lua, check_reply(lua, 1).bytes());
}

int flag_blank(lua_State* lua) {
  RouteReply& reply = check_reply(lua, 1);
  lua_pushboolean(lua, reply.blank_flag(check_flag_letter(lua, 2)));
  return 1;
}

int elapsed(lua_State* lua) {
  lua_pushinteger(lua, check_reply(lua, 1).elapsed.count());
  return 1;
}

/// Also when the request is over: a variable may be closed late, and then there is nothing to free.
int close(lua_State* lua) {
  if (lua_islightuserdata(lua, 1)) {
    if (RouteReply* const reply = reply_at(lua, 1)) {
      reply->close();
    } else if (Ticket::at(lua, 1).is_foreign() || Ticket::at(lua, 1).is_request()) {
      refuse_ticket(lua, 1, kReplyType);
    }
    return 0;
  }
  ReplyBox* const box = reply_box_at(lua, 1);
  if (box == nullptr) {
    refuse_type(lua, 1, kShownReply);
  }
  if (box->reply != nullptr) {
    box->reply->close();
  }
  return 0;
}

constexpr luaL_Reg kMethods[] = {
    {"ok", ok},           {"hit", hit},
    {"code", code},       {"vlen", value_length},
    {"line", line},       {"flag_blank", flag_blank},
    {"elapsed", elapsed}, {"raw_string", raw_string},
    {"close", close},     {nullptr, nullptr},
};
constexpr luaL_Reg kShownMetamethods[] = {
    {"__close", close},
    {nullptr, nullptr},
};
constexpr luaL_Reg kOwnedMetamethods[] = {
    {"__close", close},
    {"__gc", destroy},
    {nullptr, nullptr},
};

}  // namespace

ReplyBox* push_reply(lua_State* lua, RouteReply& reply) {
  auto* const box =
      std::construct_at(static_cast<ReplyBox*>(lua_newuserdatauv(lua, sizeof(ReplyBox), 0)));
  box->reply = &reply;
  set_box_type(lua, kShownReply);
  return box;
}

RouteReply& push_owned_reply(lua_State* lua) {
  auto* const owned =
      std::construct_at(static_cast<OwnedReply*>(lua_newuserdatauv(lua, sizeof(OwnedReply), 0)));
  owned->box = ReplyBox{.reply = &owned->reply, .is_owned = true};
  set_box_type(lua, kOwnedReply);
  return owned->reply;
}

RouteReply& check_reply(lua_State* lua, int index) {
  if (lua_islightuserdata(lua, index)) [[likely]] {
    if (RouteReply* const reply = reply_at(lua, index)) [[likely]] {
      return *reply;
    }
    if (Ticket::at(lua, index).is_foreign() || Ticket::at(lua, index).is_request()) {
      refuse_ticket(lua, index, kReplyType);
    }
    raise(lua, kRequestIsOver);
  }
  const ReplyBox* const box = reply_box_at(lua, index);
  if (box == nullptr) {
    refuse_type(lua, index, kShownReply);
  }
  if (box->reply == nullptr) {
    raise(lua, kRequestIsOver);
  }
  return *box->reply;
}

RouteReply* reply_at(lua_State* lua, int index) {
  if (lua_islightuserdata(lua, index)) [[likely]] {
    const Ticket ticket = Ticket::at(lua, index);
    ScriptSlot* const slot = ticket.is_request() ? nullptr : slot_of(lua, ticket);
    return slot == nullptr ? nullptr : &slot->context().reply(ticket.handle());
  }
  const ReplyBox* const box = reply_box_at(lua, index);
  return box == nullptr ? nullptr : box->reply;
}

void define_reply(lua_State* lua) {
  define_box_type(lua, kShownReply, kMethods, kShownMetamethods);
  define_box_type(lua, kOwnedReply, kMethods, kOwnedMetamethods);
}

}  // namespace kvferry::lua
