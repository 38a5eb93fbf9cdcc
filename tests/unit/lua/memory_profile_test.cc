#include "lua/memory_profile.h"

#include <gtest/gtest.h>

#include "lua/vm.h"

namespace kvferry::lua {
namespace {

TEST(MemoryProfile, CountsByKindSinceTheLastLine) {
  MemoryProfile profile("worker 0");
  int block = 0;
  profile.note(nullptr, LUA_TSTRING, 30);
  profile.note(nullptr, LUA_TSTRING, 12);
  profile.note(nullptr, LUA_TTABLE, 56);
  profile.note(nullptr, 0, 64);
  profile.note(&block, 64, 128);
  profile.note(&block, 128, 0);
  profile.note(nullptr, 0, 0);
  EXPECT_EQ(
      profile.take_line(),
      "MEMPROF[worker 0]: string[2][42] table[1][56] def[1][64] realloc[1][128] free[1][128]\n");
  EXPECT_EQ(profile.take_line(), "") << "nothing has happened since";
}

TEST(MemoryProfile, AStateReportsWhatItsScriptsMake) {
  Vm vm(VmLimits{}, nullptr);
  EXPECT_EQ(vm.take_profile_line(), "");
  vm.profile_memory("config");
  ASSERT_EQ(luaL_dostring(vm.main(), "t = {} for i = 1, 100 do t[i] = {i .. 'long enough'} end"),
            0);
  const std::string line = vm.take_profile_line();
  EXPECT_EQ(line.rfind("MEMPROF[config]: ", 0), 0U) << line;
  constexpr std::string_view kTables = " table[";
  const std::size_t place = line.find(kTables);
  ASSERT_NE(place, std::string::npos) << line;
  EXPECT_GE(std::stoi(line.substr(place + kTables.size())), 101) << line;
}

}  // namespace
}  // namespace kvferry::lua
