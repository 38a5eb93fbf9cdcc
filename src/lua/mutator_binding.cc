#include <algorithm>
#include <array>
#include <memory>

#include "lua/box_type.h"
#include "lua/boxes.h"
#include "lua/step_reader.h"
#include "route/mutator.h"

namespace kvferry::lua {
namespace {

using route::MutateArgument;
using route::MutateKind;
using route::MutateResult;
using route::MutateStep;
using route::RouteReply;
using route::RouteRequest;

constexpr const char* kWhat = "mutator";
constexpr std::size_t kCommandBytesMax = 20;
constexpr BoxType kMutator{.name = "mcp.mutator", .registry_name = "mcp.mutator"};

/// Index of the object that is written, and of the argument that steps call 1.
constexpr int kTarget = 2;
constexpr int kFirstArgument = 3;

struct MutatorBox {
  bool writes_replies = false;
  bool is_over = false;  // Emptied by a script that called its finalizer.
  route::Mutator mutator{};
};
static_assert(alignof(MutatorBox) <= alignof(lua_Integer), "what Lua aligns userdata to");

struct NamedKind {
  std::string_view name;
  MutateKind kind;
};
constexpr std::array kKinds = {
    NamedKind{"cmdset", MutateKind::SetCommand},
    NamedKind{"cmdcopy", MutateKind::CopyCommand},
    NamedKind{"keyset", MutateKind::SetKey},
    NamedKind{"keycopy", MutateKind::CopyKey},
    NamedKind{"flagset", MutateKind::SetFlag},
    NamedKind{"flagcopy", MutateKind::CopyFlag},
    NamedKind{"flagcopyall", MutateKind::CopyAllFlags},
    NamedKind{"valcopy", MutateKind::CopyValue},
    NamedKind{"resnull", MutateKind::NothingThere},
    NamedKind{"rescodeset", MutateKind::SetCode},
    NamedKind{"rescodecopy", MutateKind::CopyCode},
    NamedKind{"reserr", MutateKind::SetError},
};

MutateKind read_kind(const StepReader& reader, bool writes_replies) {
  const auto name = reader.text("t");
  if (!name) {
    reader.refuse("unknown step type");
  }
  const auto* const found = std::ranges::find(kKinds, *name, &NamedKind::name);
  if (found == kKinds.end() ||
      !(writes_replies ? route::fits_reply(found->kind) : route::fits_request(found->kind))) {
    reader.refuse("step incompatible with mutator type");
  }
  return found->kind;
}

std::uint32_t read_argument_number(const StepReader& reader) {
  if (!reader.push("idx")) {
    reader.refuse("must provide 'idx' argument");
  }
  if (lua_isinteger(reader.lua(), -1) == 0) {
    reader.refuse("must provide 'idx' argument as an integer");
  }
  const lua_Integer number = lua_tointeger(reader.lua(), -1);
  if (number < 1) {
    reader.refuse("'idx' argument must be greater than 0");
  }
  if (number > kStepsMax) {
    reader.refuse("'idx' argument is too large");
  }
  return static_cast<std::uint32_t>(number);
}

std::string_view read_flag_value(const StepReader& reader) {
  if (!reader.push("val")) {
    return {};
  }
  if (lua_isstring(reader.lua(), -1) == 0) {
    reader.refuse("unsupported type for 'val'");
  }
  return text_at(reader.lua(), -1);
}

void read_error(const StepReader& reader, MutateStep& step) {
  const std::string_view code = reader.need_text("code");
  if (code == "error") {
    step.text = "ERROR";
  } else if (code == "client") {
    step.text = "CLIENT_ERROR";
  } else if (code == "server") {
    step.text = "SERVER_ERROR";
  } else {
    reader.refuse("code must be 'error', server', or 'client'");
  }
  if (!reader.push("msg")) {
    return;
  }
  const std::string_view text =
      lua_isstring(reader.lua(), -1) != 0 ? text_at(reader.lua(), -1) : std::string_view();
  if (text.empty()) {
    reader.refuse("'msg' must be a nonzero length string");
  }
  step.text += ' ';
  step.text += stored_part(text);
}

void read_step(const StepReader& reader, MutatorBox& box) {
  MutateStep& step = box.mutator.add(read_kind(reader, box.writes_replies));
  switch (step.kind) {
    case MutateKind::SetCommand: {
      const std::string_view command = reader.need_text("cmd");
      if (command.size() > kCommandBytesMax) {
        reader.refuse("'cmd' too long");
      }
      step.text = command;
      return;
    }
    case MutateKind::SetKey:
    case MutateKind::SetCode:
      step.text = stored_part(reader.need_some_text("val"));
      return;
    case MutateKind::SetFlag:
      step.text = reader.need_flag(kWhat);
      step.text += stored_part(read_flag_value(reader));
      return;
    case MutateKind::SetError:
      read_error(reader, step);
      return;
    case MutateKind::CopyFlag:
      step.letter = reader.need_flag(kWhat);
      break;
    default:
      break;
  }
  step.argument = read_argument_number(reader);
}

int make_mutator(lua_State* lua, bool writes_replies) {
  const int count = lua_gettop(lua);
  if (count == 0) {
    return raise(lua, "mutator failed to initialize, no steps given");
  }
  if (count > kStepsMax) {
    return raise(lua, "mutator ran out of stack space for results");
  }
  luaL_checkstack(lua, LUA_MINSTACK, nullptr);
  auto* const box =
      std::construct_at(static_cast<MutatorBox*>(lua_newuserdatauv(lua, sizeof(MutatorBox), 0)));
  box->writes_replies = writes_replies;
  set_box_type(lua, kMutator);
  for (int i = 1; i <= count; ++i) {
    luaL_checktype(lua, i, LUA_TTABLE);
    read_step(StepReader(lua, kWhat, i), *box);
    lua_settop(lua, count + 1);
  }
  box->mutator.finish();
  return 1;
}

int make_request_mutator(lua_State* lua) {
  return make_mutator(lua, false);
}

int make_reply_mutator(lua_State* lua) {
  return make_mutator(lua, true);
}

/// The argument at `index`, where numbers have been made texts.
MutateArgument argument_at(lua_State* lua, int index) {
  using Kind = MutateArgument::Kind;
  switch (lua_type(lua, index)) {
    case LUA_TNONE:
    case LUA_TNIL:
      return {};
    case LUA_TBOOLEAN:
      return {.kind = lua_toboolean(lua, index) != 0 ? Kind::True : Kind::Nothing};
    case LUA_TSTRING:
      return {.kind = Kind::Text, .text = text_at(lua, index)};
    default:
      break;
  }
  if (const RouteRequest* const request = request_at(lua, index)) {
    return {.kind = Kind::Request, .request = request};
  }
  if (const RouteReply* const reply = reply_at(lua, index)) {
    return {.kind = Kind::Reply, .reply = reply};
  }
  return {.kind = Kind::Other};
}

void read_arguments(lua_State* lua, route::Mutator& mutator) {
  const int last = std::min(lua_gettop(lua), kFirstArgument + kStepsMax);
  for (int i = kFirstArgument; i <= last; ++i) {
    if (lua_type(lua, i) == LUA_TNUMBER) {
      lua_tolstring(lua, i, nullptr);  // Turns it into a text in its place.
    }
  }
  int index = kFirstArgument;
  for (MutateArgument& argument : mutator.arguments()) {
    argument = argument_at(lua, index);
    ++index;
  }
}

int write_request(lua_State* lua, route::Mutator& mutator, RouteRequest& request) {
  if (request.has_value()) {
    return raise(lua, "mutator: request has already been rendered");
  }
  read_arguments(lua, mutator);
  switch (mutator.write(request)) {
    case MutateResult::Written:
      return 0;
    case MutateResult::Unusable:
      lua_pushboolean(lua, 0);
      return 1;
    case MutateResult::TooLong:
      return raise(lua, "mutator: new request is too long");
    case MutateResult::Malformed:
      break;
  }
  return raise(lua, "mutator: failed to parse new request");
}

int write_reply(lua_State* lua, route::Mutator& mutator, RouteReply& reply) {
  if (!reply.is_empty() || reply.is_closed()) {
    return raise(lua, "mutator: result has already been rendered");
  }
  read_arguments(lua, mutator);
  switch (mutator.write(reply)) {
    case MutateResult::Written:
      return 0;
    case MutateResult::Unusable:
      lua_pushboolean(lua, 0);
      return 1;
    default:
      return raise(lua, "mutator: failed to parse new result");
  }
}

int mutate(lua_State* lua) {
  constexpr const char* kWrongObject = "invalid argument to mutator object";
  auto* const box = static_cast<MutatorBox*>(box_at(lua, 1, kMutator));
  if (box == nullptr || box->is_over) {
    refuse_type(lua, 1, kMutator);
  }
  if (box->writes_replies) {
    RouteReply* const reply = reply_at(lua, kTarget);
    return reply == nullptr ? luaL_argerror(lua, kTarget, kWrongObject)
                            : write_reply(lua, box->mutator, *reply);
  }
  RouteRequest* const request = request_at(lua, kTarget);
  return request == nullptr ? luaL_argerror(lua, kTarget, kWrongObject)
                            : write_request(lua, box->mutator, *request);
}

int destroy(lua_State* lua) {
  auto* const box = static_cast<MutatorBox*>(box_at(lua, 1, kMutator));
  if (box != nullptr && !box->is_over) {
    box->is_over = true;
    box->mutator.~Mutator();
  }
  return 0;
}

constexpr luaL_Reg kMethods[] = {{nullptr, nullptr}};
constexpr luaL_Reg kMetamethods[] = {
    {"__call", mutate},
    {"__gc", destroy},
    {nullptr, nullptr},
};

}  // namespace

void define_mutators(lua_State* lua) {
  define_box_type(lua, kMutator, kMethods, kMetamethods);
  lua_pushcfunction(lua, make_request_mutator);
  lua_setfield(lua, -2, "req_mutator_new");
  lua_pushcfunction(lua, make_reply_mutator);
  lua_setfield(lua, -2, "res_mutator_new");
}

}  // namespace kvferry::lua
