// The options that memcached 1.6 knows, and those of its -o.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace kvferry::app {

struct MemcachedOption {
  char letter;  // Several rows with the same letter are names of one option.
  std::string_view name;
  bool takes_value;
};

struct MemcachedSuboption {
  enum class Value : std::uint8_t { None, Needed, Optional };
  std::string_view name;  // May have "no_" in front when the value is optional.
  Value value;
};

std::span<const MemcachedOption> memcached_options() noexcept;
/// Null when there is none.
const MemcachedOption* find_memcached_option(char letter) noexcept;
/// Null when there is none; takes "no_" in front of the name, too.
const MemcachedSuboption* find_memcached_suboption(std::string_view name) noexcept;
/// Sentences that name what is allowed.
std::string memcached_options_allowed();
std::string memcached_suboptions_allowed();

}  // namespace kvferry::app
