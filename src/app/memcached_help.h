// What `kvferry memcached -h` prints.
#pragma once

#include <string_view>

namespace kvferry::app {

std::string_view memcached_help() noexcept;

}  // namespace kvferry::app
