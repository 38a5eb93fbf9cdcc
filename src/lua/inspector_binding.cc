#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "lua/box_type.h"
#include "lua/boxes.h"
#include "lua/step_reader.h"
#include "route/inspector.h"

namespace kvferry::lua {
namespace {

using route::InspectKind;
using route::InspectStep;
using route::InspectValue;
using route::InspectValues;

constexpr const char* kWhat = "inspector";
constexpr BoxType kInspector{.name = "mcp.inspector", .registry_name = "mcp.inspector"};

/// The maps of KeyPiece steps lie in a table, by the numbers of their steps; the table is the
/// userdata's only user value.
struct Inspector {
  bool reads_replies = false;
  bool is_over = false;  // Destroyed by a script that called its finalizer.
  int results = 0;
  std::vector<InspectStep> steps{};
};
static_assert(alignof(Inspector) <= alignof(lua_Integer), "what Lua aligns userdata to");

struct NamedKind {
  std::string_view name;
  InspectKind kind;
};
constexpr std::array kKinds = {
    NamedKind{"sepkey", InspectKind::KeyPiece},     NamedKind{"keybegin", InspectKind::KeyBegins},
    NamedKind{"keyis", InspectKind::KeyIs},         NamedKind{"hasflag", InspectKind::HasFlag},
    NamedKind{"flagtoken", InspectKind::FlagToken}, NamedKind{"flagint", InspectKind::FlagInteger},
    NamedKind{"flagis", InspectKind::FlagIs},
};

InspectKind read_kind(const StepReader& reader, bool reads_replies) {
  const auto name = reader.text("t");
  if (!name) {
    reader.refuse("unknown step type");
  }
  const auto* const found = std::ranges::find(kKinds, *name, &NamedKind::name);
  if (found == kKinds.end() || (reads_replies && route::reads_key(found->kind))) {
    reader.refuse("step incompatible with inspector type");
  }
  return found->kind;
}

/// Reads what a KeyPiece step says. `maps` is the place of the table of maps.
void read_piece(const StepReader& reader, InspectStep& step, int maps) {
  lua_State* const lua = reader.lua();
  if (reader.push("sep")) {
    const std::string_view separator =
        lua_isstring(lua, -1) != 0 ? text_at(lua, -1) : std::string_view();
    if (separator.size() != 1) {
      reader.refuse("separator must be one character");
    }
    step.separator = separator.front();
  }
  if (reader.push("pos")) {
    int is_integer = 0;
    step.position = lua_tointegerx(lua, -1, &is_integer);
    if (is_integer == 0) {
      reader.refuse("'pos' must be an integer");
    }
  }
  if (reader.push("map")) {
    if (!lua_istable(lua, -1)) {
      reader.refuse("'map' must be a table");
    }
    step.has_map = true;
    lua_rawseti(lua, maps, reader.number());
  }
}

void read_step(const StepReader& reader, Inspector& inspector, int maps) {
  InspectStep& step = inspector.steps.emplace_back();
  step.kind = read_kind(reader, inspector.reads_replies);
  inspector.results += static_cast<int>(route::result_count(step.kind));
  if (step.kind == InspectKind::KeyPiece) {
    read_piece(reader, step, maps);
    return;
  }
  if (!route::reads_key(step.kind)) {
    step.letter = reader.need_flag("inspect");
    if (step.kind != InspectKind::FlagIs) {
      return;
    }
  }
  step.text = stored_part(reader.need_some_text("str"));
}

int make_inspector(lua_State* lua, bool reads_replies) {
  const int count = lua_gettop(lua);
  if (count > kStepsMax) {
    return raise(lua, "inspector ran out of stack space for results");
  }
  luaL_checkstack(lua, LUA_MINSTACK, nullptr);
  auto* const inspector =
      std::construct_at(static_cast<Inspector*>(lua_newuserdatauv(lua, sizeof(Inspector), 1)));
  inspector->reads_replies = reads_replies;
  set_box_type(lua, kInspector);
  lua_newtable(lua);
  lua_pushvalue(lua, -1);
  lua_setiuservalue(lua, -3, 1);
  const int maps = count + 2;
  for (int i = 1; i <= count; ++i) {
    luaL_checktype(lua, i, LUA_TTABLE);
    read_step(StepReader(lua, kWhat, i), *inspector, maps);
    lua_settop(lua, maps);
  }
  lua_settop(lua, count + 1);
  return 1;
}

int make_request_inspector(lua_State* lua) {
  return make_inspector(lua, false);
}

int make_reply_inspector(lua_State* lua) {
  return make_inspector(lua, true);
}

void push_value(lua_State* lua, const InspectValue& value) {
  switch (value.kind) {
    case InspectValue::Kind::Nothing:
      lua_pushnil(lua);
      break;
    case InspectValue::Kind::Boolean:
      lua_pushboolean(lua, value.is_true);
      break;
    case InspectValue::Kind::Text:
      push_text(lua, value.text);
      break;
    case InspectValue::Kind::Integer:
      lua_pushinteger(lua, value.integer);
      break;
  }
}

/// Replaces the piece of a key at the top of the stack by what the map of step `number` has for it.
/// Without metamethods, which could end what is inspected.
void look_up(lua_State* lua, int number) {
  lua_getiuservalue(lua, 1, 1);
  lua_rawgeti(lua, -1, number);
  lua_pushvalue(lua, -3);
  lua_rawget(lua, -2);
  lua_replace(lua, -4);
  lua_pop(lua, 2);
}

void push_values(lua_State* lua, const InspectStep& step, int number, const InspectValues& values) {
  push_value(lua, values[0]);
  if (route::result_count(step.kind) == 2) {
    push_value(lua, values[1]);
  }
  if (step.has_map && values[0].kind != InspectValue::Kind::Nothing) {
    look_up(lua, number);
  }
}

const Inspector& check_inspector(lua_State* lua) {
  const auto* const inspector = static_cast<const Inspector*>(box_at(lua, 1, kInspector));
  if (inspector == nullptr || inspector->is_over) {
    refuse_type(lua, 1, kInspector);
  }
  return *inspector;
}

template <typename Subject>
int run(lua_State* lua, const Inspector& inspector, const Subject& subject) {
  luaL_checkstack(lua, inspector.results + LUA_MINSTACK,
                  "inspector ran out of stack space for results");
  for (std::size_t i = 0; i < inspector.steps.size(); ++i) {
    const InspectStep& step = inspector.steps[i];
    push_values(lua, step, static_cast<int>(i) + 1, route::inspect(step, subject));
  }
  return inspector.results;
}

bool has_step(const Inspector& inspector, InspectKind kind) {
  return std::ranges::any_of(inspector.steps,
                             [&](const InspectStep& step) { return step.kind == kind; });
}

int inspect(lua_State* lua) {
  constexpr const char* kWrongObject = "invalid argument to inspector object";
  const Inspector& inspector = check_inspector(lua);
  if (!inspector.reads_replies) {
    const route::RouteRequest* const request = request_at(lua, 2);
    return request == nullptr ? luaL_argerror(lua, 2, kWrongObject) : run(lua, inspector, *request);
  }
  const route::RouteReply* const reply = reply_at(lua, 2);
  if (reply == nullptr) {
    return luaL_argerror(lua, 2, kWrongObject);
  }
  if (!reply->is_meta() && has_step(inspector, InspectKind::HasFlag)) {
    return raise(lua, "inspector error: response is not meta protocol");
  }
  return run(lua, inspector, *reply);
}

int destroy(lua_State* lua) {
  auto* const inspector = static_cast<Inspector*>(box_at(lua, 1, kInspector));
  if (inspector != nullptr && !inspector->is_over) {
    inspector->is_over = true;
    inspector->steps.~vector();
  }
  return 0;
}

constexpr luaL_Reg kMethods[] = {{nullptr, nullptr}};
constexpr luaL_Reg kMetamethods[] = {
    {"__call", inspect},
    {"__gc", destroy},
    {nullptr, nullptr},
};

}  // namespace

void define_inspectors(lua_State* lua) {
  define_box_type(lua, kInspector, kMethods, kMetamethods);
  lua_pushcfunction(lua, make_request_inspector);
  lua_setfield(lua, -2, "req_inspector_new");
  lua_pushcfunction(lua, make_reply_inspector);
  lua_setfield(lua, -2, "res_inspector_new");
}

}  // namespace kvferry::lua
