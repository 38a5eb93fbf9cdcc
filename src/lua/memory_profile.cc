#include "lua/memory_profile.h"

#include <fmt/format.h>
#include <iterator>
#include <utility>

#include <lua.hpp>

namespace kvferry::lua {

MemoryProfile::Kind MemoryProfile::kind_of(int tag) {
  switch (tag) {
    case LUA_TSTRING:
      return String;
    case LUA_TTABLE:
      return Table;
    case LUA_TFUNCTION:
      return Function;
    case LUA_TUSERDATA:
      return Userdata;
    case LUA_TTHREAD:
      return Thread;
    default:
      return Other;
  }
}

void MemoryProfile::note(const void* block, std::size_t old_size, std::size_t new_size) {
  if (block == nullptr && new_size == 0) {
    return;  // Lua frees nothing now and then.
  }
  Kind kind = Resized;
  if (block == nullptr) {
    kind = kind_of(static_cast<int>(old_size));
  } else if (new_size == 0) {
    kind = Freed;
  }
  ++sums_[kind].count;
  sums_[kind].bytes += kind == Freed ? old_size : new_size;
}

std::string MemoryProfile::take_line() {
  constexpr std::array<std::string_view, kKinds> kWords = {"string", "table", "func",    "udata",
                                                           "thr",    "def",   "realloc", "free"};
  std::string line;
  for (std::size_t i = 0; i < kKinds; ++i) {
    const Sum sum = std::exchange(sums_[i], {});
    if (sum.count != 0) {
      fmt::format_to(std::back_inserter(line), " {}[{}][{}]", kWords[i], sum.count, sum.bytes);
    }
  }
  return line.empty() ? line : fmt::format("MEMPROF[{}]:{}\n", name_, line);
}

}  // namespace kvferry::lua
