// Reading the tables that describe the steps of inspectors and mutators.
#pragma once

#include <optional>
#include <string_view>

#include "lua/stack.h"
#include "route/route_request.h"

namespace kvferry::lua {

/// Steps that one inspector or mutator may have.
inline constexpr int kStepsMax = 250;

/// A step: the table at stack place `number`, where the first step is at place 1. What functions
/// return is a view of a value that they leave on the stack.
class StepReader {
 public:
  StepReader(lua_State* lua, const char* what, int number)
      : lua_(lua), what_(what), number_(number) {}

  lua_State* lua() const { return lua_; }
  int number() const { return number_; }

  /// Pushes field `name`; false, and still a nil on the stack, when it is absent.
  bool push(const char* name) const;
  /// A string or a number as text; nothing, also for other types, when it is none.
  std::optional<std::string_view> text(const char* name) const;
  /// The same; raises `must provide '<name>' argument`.
  std::string_view need_text(const char* name) const;
  /// Raises `'<name>' must have nonzero length` for an empty one.
  std::string_view need_some_text(const char* name) const;
  /// The field `flag`: one letter or digit. `what` names the kind of object where it is not
  /// alphanumeric.
  char need_flag(const char* what) const;

  /// Raises `<what> step <number>: <text>`.
  [[noreturn]] void refuse(const char* text) const;

 private:
  lua_State* lua_;
  const char* what_;
  int number_;
};

/// What a step stores of a text: longer ones could never fit into a line, nor be found in one.
inline std::string_view stored_part(std::string_view text) {
  return text.substr(0, route::kEditedLineBytesMax);
}

}  // namespace kvferry::lua
