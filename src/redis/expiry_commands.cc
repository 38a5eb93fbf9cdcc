// Commands about the time that items have left.
#include <algorithm>
#include <fmt/format.h>

#include "redis/store_commands.h"

namespace kvferry::redis {

using store::EditOptions;
using store::ItemCopy;

namespace {

/// When an exptime is set.
struct Conditions {
  bool if_none = false;
  bool if_any = false;
  bool if_later = false;
  bool if_earlier = false;
};

/// Empty when they are read, else the error.
std::string read_conditions(std::span<const std::string_view> words, Conditions& conditions) {
  for (const std::string_view word : words) {
    if (is_word(word, "nx")) {
      conditions.if_none = true;
    } else if (is_word(word, "xx")) {
      conditions.if_any = true;
    } else if (is_word(word, "gt")) {
      conditions.if_later = true;
    } else if (is_word(word, "lt")) {
      conditions.if_earlier = true;
    } else {
      return fmt::format("ERR Unsupported option {}", word);
    }
  }
  if (conditions.if_none && (conditions.if_any || conditions.if_later || conditions.if_earlier)) {
    return "ERR NX and XX, GT or LT options at the same time are not compatible";
  }
  if (conditions.if_later && conditions.if_earlier) {
    return "ERR GT and LT options at the same time are not compatible";
  }
  return {};
}

/// Whether an item with `exptime` may get that of `at_ms`. One without counts as never ending.
bool do_hold(const Conditions& conditions, store::Instant exptime, std::int64_t at_ms) {
  const bool has_exptime = exptime != store::kNever;
  if ((conditions.if_none && has_exptime) || (conditions.if_any && !has_exptime)) {
    return false;
  }
  const std::int64_t old_ms = milliseconds_of(exptime);
  if (conditions.if_later && (!has_exptime || at_ms <= old_ms)) {
    return false;
  }
  return !conditions.if_earlier || !has_exptime || at_ms < old_ms;
}

constexpr std::int64_t kNoKey = -2;
constexpr std::int64_t kNoExpiry = -1;

/// To the nearest second.
std::int64_t seconds_of(std::int64_t milliseconds) {
  return (milliseconds + 500) / 1000;
}

}  // namespace

void StoreCommands::expire(Request& request) {
  Conditions conditions;
  if (const std::string error = read_conditions(request.args.subspan(3), conditions);
      !error.empty()) {
    request.reply.error(error);
    return;
  }
  const ExpiryForm form{.is_in_seconds = !request.command.starts_with('p'),
                        .is_relative = !request.command.ends_with("at")};
  const Expiry expiry = read_expiry(request.args[2], form, true, request.now_ms);
  if (expiry.error != ExpiryError::None) {
    write_error(request, expiry.error);
    return;
  }
  bool is_set = false;
  const bool is_done = edit(request, request.args[1], [&](ItemCopy& copy, EditOptions& stored) {
    is_set = copy.is_found && do_hold(conditions, copy.exptime, expiry.at_ms);
    if (!is_set) {
      return Edit::Keep;
    }
    if (expiry.at_ms <= request.now_ms) {
      return Edit::Remove;
    }
    stored.exptime = instant_of(expiry.at_ms);
    return Edit::SetExptime;
  });
  if (is_done) {
    request.reply.integer(is_set ? 1 : 0);
  }
}

void StoreCommands::time_to_live(Request& request) {
  const Look look = look_at(request, request.args[1], Access::DoesNot);
  if (!look.is_found || look.exptime == store::kNever) {
    request.reply.integer(look.is_found ? kNoExpiry : kNoKey);
    return;
  }
  const std::int64_t left_ms =
      std::max<std::int64_t>(milliseconds_of(look.exptime) - request.now_ms, 0);
  request.reply.integer(request.command == "ttl" ? seconds_of(left_ms) : left_ms);
}

void StoreCommands::expire_time(Request& request) {
  const Look look = look_at(request, request.args[1], Access::DoesNot);
  if (!look.is_found || look.exptime == store::kNever) {
    request.reply.integer(look.is_found ? kNoExpiry : kNoKey);
    return;
  }
  const std::int64_t at_ms = milliseconds_of(look.exptime);
  request.reply.integer(request.command == "expiretime" ? seconds_of(at_ms) : at_ms);
}

void StoreCommands::persist(Request& request) {
  bool is_set = false;
  const bool is_done = edit(request, request.args[1], [&](ItemCopy& copy, EditOptions& stored) {
    is_set = copy.is_found && copy.exptime != store::kNever;
    stored.exptime = store::kNever;
    return is_set ? Edit::SetExptime : Edit::Keep;
  });
  if (is_done) {
    request.reply.integer(is_set ? 1 : 0);
  }
}

}  // namespace kvferry::redis
