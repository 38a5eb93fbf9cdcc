// MemoryProfile: what a Lua state allocates, by the kind of object: `-o proxy_memprofile`.
//
// Source: docs/lua.md, "Starting". Threads: that of the state.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kvferry::lua {

class MemoryProfile {
 public:
  explicit MemoryProfile(std::string name) : name_(std::move(name)) {}

  /// What lua_Alloc was called with, and served: without a block, `old_size` is Lua's tag of what
  /// is being made.
  void note(const void* block, std::size_t old_size, std::size_t new_size);
  /// What has happened since the last line was taken, with its line end; empty when nothing has.
  std::string take_line();

 private:
  enum Kind : std::size_t { String, Table, Function, Userdata, Thread, Other, Resized, Freed };
  static constexpr std::size_t kKinds = Freed + 1;
  struct Sum {
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
  };

  static Kind kind_of(int tag);

  std::string name_;
  std::array<Sum, kKinds> sums_{};
};

}  // namespace kvferry::lua
