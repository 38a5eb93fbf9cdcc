#include <cstdint>
#include <memory>

#include "lua/box_type.h"
#include "lua/boxes.h"
#include "lua/constants.h"
#include "lua/script_slot.h"
#include "lua/tickets.h"
#include "protocol/memcache/number.h"

namespace kvferry::lua {
namespace {

using route::EditError;
using route::FlagToken;
using route::RouteReply;
using route::RouteRequest;

// Boxes of requests that live elsewhere have no finalizer, so that the collector need not keep them
// for another cycle.
constexpr BoxType kShownRequest{.name = kRequestType, .registry_name = kRequestType};
constexpr BoxType kOwnedRequest{.name = kRequestType, .registry_name = "mcp.request (owned)"};

/// What mcp.request() makes. The bytes of its line and value follow it in the same block, so that
/// the collector knows how much memory it takes.
struct OwnedRequest {
  RequestBox box;
  RouteRequest request;
};
static_assert(alignof(OwnedRequest) <= alignof(lua_Integer), "what Lua aligns userdata to");

constexpr const char* kLineEnd = "\r\n";
constexpr std::string_view kRequestIsOver = "request is over: its object cannot be used any more";

RequestBox* request_box_at(lua_State* lua, int index) {
  return static_cast<RequestBox*>(box_at(lua, index, kShownRequest, kOwnedRequest));
}

/// The optional value of mcp.request(): a text, or what a request or a reply holds.
std::string_view check_value(lua_State* lua, int index) {
  if (lua_isnoneornil(lua, index)) {
    return {};
  }
  if (lua_isstring(lua, index) != 0) {
    const std::string_view text = check_text(lua, index);
    if (!text.ends_with(kLineEnd)) {
      raise(lua, "value passed to mcp.request must end with \\r\\n");
    }
    return text;
  }
  if (const RouteReply* reply = reply_at(lua, index)) {
    return reply->value_with_end();
  }
  return check_request(lua, index).value_with_end();
}

int make_request(lua_State* lua) {
  const std::string_view line = check_text(lua, 1);
  if (!line.ends_with(kLineEnd)) {
    return raise(lua, "request must end with \r\n");
  }
  if (line.size() > route::kEditedLineBytesMax) {
    return raise(lua, "request length too long");
  }
  const std::string_view value = check_value(lua, 2);
  const std::size_t size = line.size() + value.size();
  void* const place = lua_newuserdatauv(lua, sizeof(OwnedRequest) + size, 0);
  auto* const owned = std::construct_at(static_cast<OwnedRequest*>(place));
  owned->box = RequestBox{.request = &owned->request, .is_owned = true};
  set_box_type(lua, kOwnedRequest);
  char* const bytes = static_cast<char*>(place) + sizeof(OwnedRequest);
  line.copy(bytes, line.size());
  value.copy(bytes + line.size(), value.size());
  if (!owned->request.borrow_text({bytes, size}, line.size())) {
    return raise(lua, "failed to parse request");
  }
  return 1;
}

int destroy(lua_State* lua) {
  auto* const owned = static_cast<OwnedRequest*>(box_at(lua, 1, kOwnedRequest));
  // Scripts can call this too, and go on using the object.
  if (owned != nullptr && owned->box.request != nullptr) {
    owned->box.request = nullptr;
    owned->request.~RouteRequest();
  }
  return 0;
}

void push_text_or_nil(lua_State* lua, std::string_view text) {
  if (text.empty()) {
    lua_pushnil(lua);
  } else {
    push_text(lua, text);
  }
}

int command(lua_State* lua) {
  lua_pushinteger(lua, command_number(check_request(lua, 1).command()));
  return 1;
}

int key(lua_State* lua) {
  push_text(lua, check_request(lua, 1).key());
  return 1;
}

int trim_key(lua_State* lua, bool is_left) {
  RouteRequest& request = check_request(lua, 1);
  const lua_Integer count = luaL_checkinteger(lua, 2);
  if (count < 0 || static_cast<lua_Unsigned>(count) >= request.key().size()) {
    return raise_format(lua, "%ctrimkey cannot zero out key", is_left ? 'l' : 'r');
  }
  const auto bytes = static_cast<std::size_t>(count);
  if (is_left) {
    request.trim_key_left(bytes);
  } else {
    request.trim_key_right(bytes);
  }
  return 0;
}

int trim_key_left(lua_State* lua) {
  return trim_key(lua, true);
}

int trim_key_right(lua_State* lua) {
  return trim_key(lua, false);
}

int raw_line(lua_State* lua) {
  push_text(lua, check_request(lua, 1).line_text());
  return 1;
}

int raw_value(lua_State* lua) {
  push_text_or_nil(lua, check_request(lua, 1).value_with_end());
  return 1;
}

int count_tokens(lua_State* lua) {
  lua_pushinteger(lua, static_cast<lua_Integer>(check_request(lua, 1).token_count()));
  return 1;
}

/// The number of a token at `index`; 0, which no token has, when it is absent or negative.
std::size_t check_token_number(lua_State* lua, int index) {
  const lua_Integer number = luaL_optinteger(lua, index, 0);
  return number < 0 ? 0 : static_cast<std::size_t>(number);
}

int token(lua_State* lua) {
  RouteRequest& request = check_request(lua, 1);
  const std::size_t number = check_token_number(lua, 2);
  if (lua_isnoneornil(lua, 3)) {
    push_text_or_nil(lua, request.token(number));
    return 1;
  }
  switch (request.set_token(number, check_text(lua, 3))) {
    case EditError::None:
      return 0;
    case EditError::NoSuchToken:
      lua_pushnil(lua);
      return 1;
    default:
      return raise(lua, "token(): request malformed after edit");
  }
}

void push_integer_or_nil(lua_State* lua, std::string_view text) {
  std::int64_t number = 0;
  if (memcache::read_number(text, number)) {
    lua_pushinteger(lua, number);
  } else {
    lua_pushnil(lua);
  }
}

int token_integer(lua_State* lua) {
  const RouteRequest& request = check_request(lua, 1);
  push_integer_or_nil(lua, request.token(check_token_number(lua, 2)));
  return 1;
}

int has_flag(lua_State* lua) {
  const RouteRequest& request = check_request(lua, 1);
  const std::string_view letter = check_text(lua, 2);
  if (letter.size() != 1) {
    return raise(lua, "has_flag(): meta flag must be a single character");
  }
  if (!is_flag_letter(letter.front())) {
    return raise(lua, "has_flag(): invalid flag, must be A-Z,a-z");
  }
  lua_pushboolean(lua, request.find_flag(letter.front()).is_found);
  return 1;
}

int push_found(lua_State* lua, bool is_found) {
  lua_pushboolean(lua, is_found);
  return 1;
}

int flag_token(lua_State* lua) {
  RouteRequest& request = check_request(lua, 1);
  const char letter = check_flag_letter(lua, 2);
  const bool is_edit = !lua_isnoneornil(lua, 3);
  const std::string_view new_token = is_edit ? check_text(lua, 3) : std::string_view();
  const FlagToken found = request.find_flag(letter);
  if (!found.is_found) {
    return push_found(lua, false);
  }
  lua_pushboolean(lua, 1);
  int results = 1;
  if (!found.text.empty()) {
    push_text(lua, found.text);
    results = 2;
  }
  if (is_edit && request.replace_flag_token(letter, new_token) != EditError::None) {
    return push_found(lua, false);
  }
  return results;
}

int flag_token_integer(lua_State* lua) {
  const RouteRequest& request = check_request(lua, 1);
  const FlagToken found = request.find_flag(check_flag_letter(lua, 2));
  lua_pushboolean(lua, found.is_found);
  std::int64_t number = 0;
  if (!found.is_found || !memcache::read_number(found.text, number)) {
    return 1;
  }
  lua_pushinteger(lua, number);
  return 2;
}

/// The text of a flag, which may be absent or a number.
std::string_view check_flag_text(lua_State* lua, int index) {
  if (lua_isnoneornil(lua, index)) {
    return {};
  }
  if (lua_isstring(lua, index) == 0) {
    raise(lua, "request: invalid flag argument");
  }
  return text_at(lua, index);
}

/// Replaces flag `old_letter` by `letter`; appends that when `old_letter` is absent. A flag is not
/// made to stand there twice, which servers refuse.
EditError put_flag(RouteRequest& request, char old_letter, char letter, std::string_view text) {
  EditError error = request.replace_flag(old_letter, letter, text);
  if (error == EditError::NoSuchToken && old_letter != letter) {
    error = request.replace_flag(letter, letter, text);
  }
  return error == EditError::NoSuchToken ? request.add_flag(letter, text) : error;
}

int flag_add(lua_State* lua) {
  RouteRequest& request = check_request(lua, 1);
  const char letter = check_flag_letter(lua, 2);
  const std::string_view text = check_flag_text(lua, 3);
  return push_found(lua, !request.find_flag(letter).is_found &&
                             request.add_flag(letter, text) == EditError::None);
}

int flag_set(lua_State* lua) {
  RouteRequest& request = check_request(lua, 1);
  const char letter = check_flag_letter(lua, 2);
  const std::string_view text = check_flag_text(lua, 3);
  return push_found(lua, put_flag(request, letter, letter, text) == EditError::None);
}

int flag_replace(lua_State* lua) {
  RouteRequest& request = check_request(lua, 1);
  const char old_letter = check_flag_letter(lua, 2);
  const char letter = check_flag_letter(lua, 3);
  const std::string_view text = check_flag_text(lua, 4);
  return push_found(lua, put_flag(request, old_letter, letter, text) == EditError::None);
}

int flag_delete(lua_State* lua) {
  RouteRequest& request = check_request(lua, 1);
  const char letter = check_flag_letter(lua, 2);
  return push_found(lua, request.replace_flag_token(letter, "") == EditError::None);
}

/// Why a reply does not match a request; null when it does, or when nothing could be compared.
struct Match {
  bool is_match = false;
  const char* reason = nullptr;
};

Match match(const RouteRequest& request, const RouteReply& reply) {
  using route::AnswerType;
  if (reply.bytes().empty() || reply.type() == AnswerType::None ||
      reply.type() == AnswerType::Bad) {
    return {.reason = "failed to parse response"};
  }
  const FlagToken reply_key = reply.find_flag('k');
  if (reply_key.is_found && reply_key.text != request.key()) {
    return {.reason = "key in response does not match request key"};
  }
  const FlagToken opaque = request.find_flag('O');
  if (opaque.text.empty()) {
    return {.is_match = reply_key.is_found};
  }
  const FlagToken reply_opaque = reply.find_flag('O');
  if (!reply_opaque.is_found) {
    return {.reason = "opaque in request but not in response"};
  }
  if (reply_opaque.text != opaque.text) {
    return {.reason = "request opaque does not match response opaque"};
  }
  return {.is_match = true};
}

int match_reply(lua_State* lua) {
  const RouteRequest& request = check_request(lua, 1);
  const Match result = match(request, check_reply(lua, 2));
  lua_pushboolean(lua, result.is_match);
  if (result.reason == nullptr) {
    lua_pushnil(lua);
  } else {
    lua_pushstring(lua, result.reason);
  }
  return 2;
}

constexpr luaL_Reg kMethods[] = {
    {"command", command},           {"key", key},
    {"ltrimkey", trim_key_left},    {"rtrimkey", trim_key_right},
    {"raw_line", raw_line},         {"raw_value", raw_value},
    {"ntokens", count_tokens},      {"token", token},
    {"token_int", token_integer},   {"has_flag", has_flag},
    {"flag_token", flag_token},     {"flag_token_int", flag_token_integer},
    {"flag_add", flag_add},         {"flag_set", flag_set},
    {"flag_replace", flag_replace}, {"flag_del", flag_delete},
    {"match_res", match_reply},     {nullptr, nullptr},
};
constexpr luaL_Reg kShownMetamethods[] = {
    {"__tostring", raw_line},
    {nullptr, nullptr},
};
constexpr luaL_Reg kOwnedMetamethods[] = {
    {"__tostring", raw_line},
    {"__gc", destroy},
    {nullptr, nullptr},
};

}  // namespace

char check_flag_letter(lua_State* lua, int index) {
  const std::string_view letter = check_text(lua, index);
  if (letter.size() != 1) {
    raise(lua, "request: meta flag must be a single character");
  }
  if (!is_flag_letter(letter.front())) {
    raise(lua, "request: invalid flag, must be A-Z,a-z");
  }
  return letter.front();
}

RequestBox* push_request(lua_State* lua, RouteRequest& request) {
  auto* const box =
      std::construct_at(static_cast<RequestBox*>(lua_newuserdatauv(lua, sizeof(RequestBox), 0)));
  box->request = &request;
  set_box_type(lua, kShownRequest);
  return box;
}

RouteRequest& check_request(lua_State* lua, int index) {
  if (lua_islightuserdata(lua, index)) [[likely]] {
    const Ticket ticket = Ticket::at(lua, index);
    ScriptSlot* const slot = slot_of(lua, ticket);
    if (slot != nullptr && ticket.is_request()) [[likely]] {
      return slot->request();
    }
    if (ticket.is_foreign() || !ticket.is_request()) {
      refuse_ticket(lua, index, kRequestType);
    }
    raise(lua, kRequestIsOver);
  }
  const RequestBox* const box = request_box_at(lua, index);
  if (box == nullptr) {
    refuse_type(lua, index, kShownRequest);
  }
  if (box->request == nullptr) {
    raise(lua, kRequestIsOver);
  }
  return *box->request;
}

RouteRequest* request_at(lua_State* lua, int index) {
  if (lua_islightuserdata(lua, index)) [[likely]] {
    const Ticket ticket = Ticket::at(lua, index);
    ScriptSlot* const slot = ticket.is_request() ? slot_of(lua, ticket) : nullptr;
    return slot == nullptr ? nullptr : &slot->request();
  }
  const RequestBox* const box = request_box_at(lua, index);
  return box == nullptr ? nullptr : box->request;
}

void define_request(lua_State* lua) {
  define_box_type(lua, kShownRequest, kMethods, kShownMetamethods);
  define_box_type(lua, kOwnedRequest, kMethods, kOwnedMetamethods);
  lua_pushcfunction(lua, make_request);
  lua_setfield(lua, -2, "request");
}

}  // namespace kvferry::lua
