#include "lua/step_reader.h"

namespace kvferry::lua {
namespace {

bool is_alphanumeric(char byte) {
  return (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
         (byte >= 'a' && byte <= 'z');
}

}  // namespace

bool StepReader::push(const char* name) const {
  return lua_getfield(lua_, number_, name) != LUA_TNIL;
}

std::optional<std::string_view> StepReader::text(const char* name) const {
  push(name);
  if (lua_isstring(lua_, -1) == 0) {
    return std::nullopt;
  }
  return text_at(lua_, -1);
}

std::string_view StepReader::need_text(const char* name) const {
  const std::optional<std::string_view> found = text(name);
  if (!found) {
    raise_format(lua_, "%s step %d: must provide '%s' argument", what_, number_, name);
  }
  return *found;
}

std::string_view StepReader::need_some_text(const char* name) const {
  const std::string_view found = need_text(name);
  if (found.empty()) {
    raise_format(lua_, "%s step %d: '%s' must have nonzero length", what_, number_, name);
  }
  return found;
}

char StepReader::need_flag(const char* what) const {
  const std::string_view flag = need_text("flag");
  if (flag.size() != 1) {
    refuse("'flag' must be a single character");
  }
  if (!is_alphanumeric(flag.front())) {
    raise_format(lua_, "%s step %d: 'flag' must be alphanumeric", what, number_);
  }
  return flag.front();
}

void StepReader::refuse(const char* text) const {
  raise_format(lua_, "%s step %d: %s", what_, number_, text);
}

}  // namespace kvferry::lua
