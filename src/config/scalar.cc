#include "config/scalar.h"

#include <array>
#include <charconv>
#include <fmt/format.h>
#include <limits>
#include <ranges>
#include <span>

namespace kvferry::config {
namespace {

struct Unit {
  std::string_view suffix;
  std::int64_t factor = 1;
};

// Longer suffixes first: "ms" also ends like "s".
constexpr std::array<Unit, 4> kTimeUnits = {
    {{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}}};
constexpr std::array<Unit, 3> kByteUnits = {
    {{"kb", 1 << 10}, {"mb", 1 << 20}, {"gb", std::int64_t{1} << 30}}};

WholeNumber scale(WholeNumber number, std::int64_t factor) noexcept {
  if (number.state != WholeNumber::State::Good) {
    return number;
  }
  if (number.value > std::numeric_limits<std::int64_t>::max() / factor ||
      number.value < std::numeric_limits<std::int64_t>::min() / factor) {
    return {WholeNumber::State::TooLarge, 0};
  }
  number.value *= factor;
  return number;
}

WholeNumber parse_with_unit(std::string_view text, std::span<const Unit> units,
                            bool unit_required) noexcept {
  for (const Unit& unit : units) {
    if (text.ends_with(unit.suffix)) {
      text.remove_suffix(unit.suffix.size());
      return scale(parse_whole(text), unit.factor);
    }
  }
  return unit_required ? WholeNumber{} : parse_whole(text);
}

}  // namespace

WholeNumber parse_whole(std::string_view text) noexcept {
  const std::string_view digits = text.starts_with('-') ? text.substr(1) : text;
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos) {
    return {};
  }
  WholeNumber number;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number.value);
  number.state = result.ec == std::errc() ? WholeNumber::State::Good : WholeNumber::State::TooLarge;
  return number;
}

std::optional<bool> parse_bool(std::string_view text) noexcept {
  if (text == "true") {
    return true;
  }
  if (text == "false") {
    return false;
  }
  return std::nullopt;
}

WholeNumber parse_millis(std::string_view text, bool unit_required) noexcept {
  return parse_with_unit(text, kTimeUnits, unit_required);
}

WholeNumber parse_bytes(std::string_view text) noexcept {
  return parse_with_unit(text, kByteUnits, false);
}

std::string millis_text(std::int64_t millis) {
  for (const Unit& unit : std::views::reverse(kTimeUnits)) {
    if (millis != 0 && millis % unit.factor == 0) {
      return fmt::format("{}{}", millis / unit.factor, unit.suffix);
    }
  }
  return "0s";
}

std::string bytes_text(std::uint64_t bytes) {
  for (const Unit& unit : std::views::reverse(kByteUnits)) {
    const auto factor = static_cast<std::uint64_t>(unit.factor);
    if (bytes != 0 && bytes % factor == 0) {
      return fmt::format("{}{}", bytes / factor, unit.suffix);
    }
  }
  return fmt::format("{}", bytes);
}

}  // namespace kvferry::config
