#include "protocol/redis_commands/key_places.h"

#include <algorithm>

#include "protocol/redis_commands/key_spec.h"
#include "protocol/redis_commands/packed_word.h"
#include "protocol/resp/integer.h"

namespace kvferry::redis {
namespace {

using Args = std::span<const std::string_view>;

/// SORT key [BY x] [LIMIT a b] [GET x] ... [ASC|DESC] [ALPHA] [STORE x]: how many arguments behind
/// the word belong to it. A word that is no option has none: the server refuses it then, whatever
/// follows.
std::size_t sort_option_args(std::string_view word) noexcept {
  if (equal_letters(word, "limit")) {
    return 2;
  }
  return equal_letters(word, "by") || equal_letters(word, "get") || equal_letters(word, "store")
             ? 1
             : 0;
}

std::uint16_t set_access(Args args) noexcept {
  const bool has_get =
      std::any_of(args.begin() + std::min<std::ptrdiff_t>(3, std::ssize(args)), args.end(),
                  [](std::string_view word) { return equal_letters(word, "get"); });
  return has_get ? kAccessRw | kAccessAccess | kAccessUpdate : kAccessOw | kAccessUpdate;
}

/// BITFIELD key [GET type offset] [OVERFLOW x] [SET ...] ...: it reads when there is nothing but
/// whole GETs.
std::uint16_t bitfield_access(Args args) noexcept {
  for (std::size_t at = 2; at < args.size(); ++at) {
    const std::size_t left = args.size() - at - 1;
    if (equal_letters(args[at], "get") && left >= 2) {
      at += 2;
    } else if (equal_letters(args[at], "overflow") && left >= 1) {
      at += 1;
    } else {
      return kAccessRw | kAccessAccess | kAccessUpdate;
    }
  }
  return kAccessRo | kAccessAccess;
}

/// Finds the keys of one request; one method for each KeyRule that needs one.
class KeyFinder {
 public:
  KeyFinder(const Command& command, Args args, std::uint32_t arg_count, KeyPlaces& out) noexcept
      : command_(command), args_(args), arg_count_(arg_count), out_(out) {}

  KeyOutcome find();

 private:
  KeyOutcome find_by_specs();
  KeyOutcome find_range(const KeySpec& spec);
  KeyOutcome find_counted(const KeySpec& spec);
  KeyOutcome find_sort();
  KeyOutcome find_geo_store();
  void find_geo_destinations(const KeySpec& spec);
  KeyOutcome find_streams();
  KeyOutcome find_migrate();
  std::uint16_t access(std::size_t spec) const noexcept { return command_.key_specs[spec].access; }
  bool is_complete() const noexcept { return args_.size() == arg_count_; }

  const Command& command_;
  Args args_;
  std::size_t arg_count_;
  KeyPlaces& out_;
};

KeyOutcome KeyFinder::find_range(const KeySpec& spec) {
  const auto first = static_cast<std::size_t>(spec.begin_at);
  // One behind the last place at which a key may be.
  const std::size_t end =
      spec.last >= 0 ? std::min(first + static_cast<std::size_t>(spec.last) + 1, arg_count_)
                     : arg_count_ - std::min(arg_count_, static_cast<std::size_t>(-1 - spec.last));
  for (std::size_t at = first; at < end; at += static_cast<std::size_t>(spec.step)) {
    out_.add(at, spec.access);
  }
  return KeyOutcome::Found;
}

KeyOutcome KeyFinder::find_counted(const KeySpec& spec) {
  const std::size_t number_at =
      static_cast<std::size_t>(spec.begin_at) + static_cast<std::size_t>(spec.last);
  const std::size_t first =
      static_cast<std::size_t>(spec.begin_at) + static_cast<std::size_t>(spec.limit);
  const auto step = static_cast<std::size_t>(spec.step);
  if (number_at >= args_.size()) {
    return number_at < arg_count_ ? KeyOutcome::NotHere : KeyOutcome::Refused;
  }
  const bool is_script = command_.key_rule == KeyRule::Script;
  std::int64_t count = 0;
  if (!resp::read_integer(args_[number_at], count)) {
    return is_script ? KeyOutcome::BadCount : KeyOutcome::Refused;
  }
  if (count < 0 || (count == 0 && !is_script)) {
    return is_script ? KeyOutcome::CountNegative : KeyOutcome::Refused;
  }
  const std::size_t room = first < arg_count_ ? (arg_count_ - first + step - 1) / step : 0;
  if (static_cast<std::uint64_t>(count) > room) {
    return is_script ? KeyOutcome::CountTooLarge : KeyOutcome::Refused;
  }
  for (std::size_t number = 0; number < static_cast<std::size_t>(count); ++number) {
    out_.add(first + number * step, spec.access);
  }
  return KeyOutcome::Found;
}

KeyOutcome KeyFinder::find_by_specs() {
  for (const KeySpec& spec : command_.key_specs) {
    const KeyOutcome outcome =
        spec.find == KeySpec::Find::KeyNum ? find_counted(spec) : find_range(spec);
    if (outcome != KeyOutcome::Found) {
      return outcome;
    }
  }
  const auto is_away = [this](const KeyPlace& place) { return place.index >= args_.size(); };
  return !is_complete() && std::ranges::any_of(out_.all(), is_away) ? KeyOutcome::NotHere
                                                                    : KeyOutcome::Found;
}

KeyOutcome KeyFinder::find_sort() {
  out_.add(1, access(0));
  std::size_t destination = 0;
  for (std::size_t at = 2; at < args_.size(); ++at) {
    if (equal_letters(args_[at], "store") && at + 1 < args_.size()) {
      destination = at + 1;
    }
    at += sort_option_args(args_[at]);
  }
  if (destination != 0) {
    out_.add(destination, access(2));
  }
  return KeyOutcome::Found;
}

void KeyFinder::find_geo_destinations(const KeySpec& spec) {
  for (std::size_t at = static_cast<std::size_t>(spec.begin_at); at + 1 < args_.size(); ++at) {
    const bool is_wanted = equal_letters(args_[at], spec.keyword);
    if (is_wanted) {
      out_.add(at + 1, spec.access);
    }
    // The name of a destination may be the word itself.
    if (is_wanted || equal_letters(args_[at], "store") || equal_letters(args_[at], "storedist")) {
      ++at;
    }
  }
}

KeyOutcome KeyFinder::find_geo_store() {
  out_.add(1, access(0));
  find_geo_destinations(command_.key_specs[1]);
  find_geo_destinations(command_.key_specs[2]);
  return KeyOutcome::Found;
}

KeyOutcome KeyFinder::find_streams() {
  for (std::size_t at = 1; at < args_.size(); ++at) {
    if (equal_letters(args_[at], "group")) {
      at += 2;  // The group and the consumer have any names. XREAD refuses the word.
    } else if (equal_letters(args_[at], "streams")) {
      const std::size_t half = (args_.size() - at - 1) / 2;
      for (std::size_t key = at + 1; key < at + 1 + half; ++key) {
        out_.add(key, access(0));
      }
      return half == 0 ? KeyOutcome::Refused : KeyOutcome::Found;
    }
  }
  return KeyOutcome::Refused;
}

/// MIGRATE host port key|"" db timeout [COPY] [REPLACE] [AUTH x] [AUTH2 x x] [KEYS key ...]
KeyOutcome KeyFinder::find_migrate() {
  std::size_t keys = 0;
  for (std::size_t at = 6; at < args_.size() && keys == 0; ++at) {
    if (equal_letters(args_[at], "keys")) {
      keys = at + 1;
    }
    at += equal_letters(args_[at], "auth2") ? 2U : equal_letters(args_[at], "auth") ? 1U : 0U;
  }
  if (keys == 0) {
    out_.add(3, access(0));
    return KeyOutcome::Found;
  }
  for (std::size_t at = keys; at < args_.size(); ++at) {
    out_.add(at, access(0));
  }
  return args_[3].empty() && !out_.is_empty() ? KeyOutcome::Found : KeyOutcome::Refused;
}

KeyOutcome KeyFinder::find() {
  switch (command_.key_rule) {
    case KeyRule::None:
      return KeyOutcome::Found;
    case KeyRule::One:
    case KeyRule::Set:
    case KeyRule::Bitfield:
      if (command_.sole_key < arg_count_) {
        out_.add(command_.sole_key,
                 sole_key_access(command_, args_, static_cast<std::uint32_t>(arg_count_)));
      }
      return command_.sole_key < args_.size() || is_complete() ? KeyOutcome::Found
                                                               : KeyOutcome::NotHere;
    case KeyRule::Specs:
    case KeyRule::Script:
      return find_by_specs();
    case KeyRule::Sort:
      return is_complete() ? find_sort() : KeyOutcome::NotHere;
    case KeyRule::GeoStore:
      return is_complete() ? find_geo_store() : KeyOutcome::NotHere;
    case KeyRule::Streams:
      return is_complete() ? find_streams() : KeyOutcome::NotHere;
    case KeyRule::Migrate:
      return is_complete() ? find_migrate() : KeyOutcome::NotHere;
  }
  return KeyOutcome::Refused;
}

}  // namespace

void KeyPlaces::clear() {
  places_.clear();
  if (places_.capacity() > kKeysKept) {
    places_.shrink_to_fit();
  }
}

KeyOutcome find_keys(const Command& command, std::span<const std::string_view> args,
                     std::uint32_t arg_count, KeyPlaces& out) {
  out.clear();
  return KeyFinder(command, args, arg_count, out).find();
}

std::uint16_t sole_key_access(const Command& command, std::span<const std::string_view> args,
                              std::uint32_t arg_count) noexcept {
  // Of a request that is not all here the most that it may do.
  if (args.size() == arg_count && command.key_rule == KeyRule::Set) {
    return set_access(args);
  }
  if (args.size() == arg_count && command.key_rule == KeyRule::Bitfield) {
    return bitfield_access(args);
  }
  return command.key_specs.empty() ? 0 : command.key_specs[0].access;
}

SortPatterns find_sort_patterns(std::span<const std::string_view> args) noexcept {
  SortPatterns patterns;
  for (std::size_t at = 2; at < args.size(); ++at) {
    if (at + 1 < args.size()) {
      patterns.has_by = patterns.has_by || (equal_letters(args[at], "by") &&
                                            args[at + 1].find('*') != std::string_view::npos);
      patterns.has_get =
          patterns.has_get || (equal_letters(args[at], "get") && args[at + 1] != "#");
    }
    at += sort_option_args(args[at]);
  }
  return patterns;
}

}  // namespace kvferry::redis
