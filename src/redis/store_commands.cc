#include "redis/store_commands.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <fmt/format.h>

namespace kvferry::redis {

namespace {

/// No name of a command is longer.
constexpr std::size_t kNameBytesMax = 16;

char small(char byte) {
  return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte | 0x20) : byte;
}

}  // namespace

bool is_word(std::string_view word, std::string_view lower) noexcept {
  return std::ranges::equal(word, lower,
                            [](char byte, char wanted) { return small(byte) == wanted; });
}

const StoreCommands::Command* StoreCommands::find(std::string_view name) {
  using C = StoreCommands;
  // In the order of their names.
  static constexpr std::array kCommands = {
      Command{"append", 3, &C::append},
      Command{"dbsize", 1, &C::count_all, 0},
      Command{"decr", 2, &C::decrement},
      Command{"decrby", 3, &C::decrement_by},
      Command{"del", -2, &C::remove, 1, -1},
      Command{"exists", -2, &C::count_existing, 1, -1},
      Command{"expire", -3, &C::expire},
      Command{"expireat", -3, &C::expire},
      Command{"expiretime", 2, &C::expire_time},
      Command{"flushall", -1, &C::flush, 0},
      Command{"flushdb", -1, &C::flush, 0},
      Command{"get", 2, &C::get},
      Command{"getdel", 2, &C::get_delete},
      Command{"getex", -2, &C::get_expire},
      Command{"getrange", 4, &C::get_range},
      Command{"getset", 3, &C::get_set},
      Command{"incr", 2, &C::increment},
      Command{"incrby", 3, &C::increment_by},
      Command{"incrbyfloat", 3, &C::increment_by_float},
      Command{"mget", -2, &C::get_many, 1, -1},
      Command{"mset", -3, &C::set_many, 1, -1, 2},
      Command{"msetnx", -3, &C::set_many_if_absent, 1, -1, 2},
      Command{"persist", 2, &C::persist},
      Command{"pexpire", -3, &C::expire},
      Command{"pexpireat", -3, &C::expire},
      Command{"pexpiretime", 2, &C::expire_time},
      Command{"psetex", 4, &C::set_expire},
      Command{"pttl", 2, &C::time_to_live},
      Command{"randomkey", 1, &C::random_key, 0},
      Command{"scan", -2, &C::scan, 0},
      Command{"set", -3, &C::set},
      Command{"setex", 4, &C::set_expire},
      Command{"setnx", 3, &C::set_if_absent},
      Command{"setrange", 4, &C::set_range},
      Command{"strlen", 2, &C::length},
      Command{"substr", 4, &C::get_range},
      Command{"touch", -2, &C::count_existing, 1, -1},
      Command{"ttl", 2, &C::time_to_live},
      Command{"type", 2, &C::type},
      Command{"unlink", -2, &C::remove, 1, -1},
  };
  static_assert(std::ranges::is_sorted(kCommands, {}, &Command::name));
  const auto* const found = std::ranges::lower_bound(kCommands, name, {}, &Command::name);
  return found != kCommands.end() && found->name == name ? found : nullptr;
}

bool StoreCommands::has_good_count(const Command& command, std::size_t count) {
  const auto given = static_cast<int>(std::min<std::size_t>(count, 1U << 30U));
  return command.arity >= 0 ? given == command.arity : given >= -command.arity;
}

bool StoreCommands::has_good_keys(const Command& command, std::span<const std::string_view> args) {
  if (command.first_key == 0) {
    return true;
  }
  const std::size_t last =
      command.last_key < 0 ? args.size() - 1 : static_cast<std::size_t>(command.last_key);
  for (auto i = static_cast<std::size_t>(command.first_key); i <= last;
       i += static_cast<std::size_t>(command.key_step)) {
    if (args[i].empty() || args[i].size() > store::kKeyBytesMax) {
      return false;
    }
  }
  return true;
}

bool StoreCommands::run(std::span<const std::string_view> args, std::int64_t now_ms,
                        resp::ReplyWriter& reply) {
  if (args.empty() || args.front().size() > kNameBytesMax) {
    return false;
  }
  std::array<char, kNameBytesMax> letters{};
  const auto* const end = std::ranges::transform(args.front(), letters.begin(), small).out;
  const std::string_view name(letters.data(), static_cast<std::size_t>(end - letters.begin()));
  const Command* const command = find(name);
  if (command == nullptr) {
    return false;
  }
  if (!has_good_count(*command, args.size())) {
    reply.error(fmt::format("ERR wrong number of arguments for '{}' command", name));
    return true;
  }
  if (!has_good_keys(*command, args)) {
    reply.error(fmt::format("ERR kvferry: a key has 1 to {} bytes", store::kKeyBytesMax));
    return true;
  }
  Request request{.command = command->name,
                  .args = args,
                  .now_ms = now_ms,
                  .now = store::Instant{static_cast<std::uint32_t>(now_ms / 1000)},
                  .reply = reply};
  (this->*command->handler)(request);
  for (std::string* const scratch : {&value_, &old_value_}) {
    if (scratch->capacity() > kScratchBytesKept) [[unlikely]] {
      std::string().swap(*scratch);
    }
  }
  copy_.pieces.release();
  return true;
}

store::EditStatus StoreCommands::carry_out(Request& request, const store::Key& key, Edit edit,
                                           const store::EditOptions& options) {
  switch (edit) {
    case Edit::Keep:
      break;
    case Edit::Store:
      return store_.replace(key, copy_, options, value_, request.now);
    case Edit::Remove:
      return store_.remove_copied(key, copy_, request.now);
    case Edit::SetExptime:
      return store_.set_exptime(key, copy_, options.exptime, request.now);
  }
  return store::EditStatus::Done;
}

void StoreCommands::load_value(store::ItemCopy& copy) {
  value_.clear();
  if (!copy.is_found) {
    return;
  }
  value_.reserve(static_cast<std::size_t>(copy.value_bytes));
  while (copy.pieces.has_more()) {
    value_.append(copy.pieces.take());
  }
  value_.append(copy.rest_view());
}

void StoreCommands::write_error(Request& request, ExpiryError error) {
  if (error == ExpiryError::NoInteger) {
    request.reply.error(kNoIntegerError);
  } else {
    request.reply.error(fmt::format("ERR invalid expire time in '{}' command", request.command));
  }
}

void StoreCommands::write_error(Request& request, store::EditStatus status) {
  switch (status) {
    case store::EditStatus::Done:
      break;
    case store::EditStatus::Changed:
      request.reply.error("ERR kvferry: the key is being changed by too many others");
      break;
    case store::EditStatus::TooLarge:
      request.reply.error("ERR kvferry: the value is larger than the store takes");
      break;
    case store::EditStatus::NoMemory:
      request.reply.error("OOM command not allowed when used memory > 'maxmemory'.");
      break;
  }
}

}  // namespace kvferry::redis
