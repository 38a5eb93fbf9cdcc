// The version of the program.
#pragma once

#include <string_view>

namespace kvferry::app {

/// As project(VERSION) in CMakeLists.txt says it.
inline constexpr std::string_view kVersion = KVFERRY_VERSION;

}  // namespace kvferry::app
