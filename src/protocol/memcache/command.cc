#include "protocol/memcache/command.h"

#include <array>
#include <cstddef>

namespace kvferry::memcache {
namespace {

// In the order of the enumerators; the static_assert below and a test keep both in step.
constexpr std::array<std::string_view, kCommandCount> kNames = {"?",
                                                                "mg",
                                                                "ms",
                                                                "md",
                                                                "mn",
                                                                "ma",
                                                                "me",
                                                                "get",
                                                                "gets",
                                                                "gat",
                                                                "gats",
                                                                "set",
                                                                "add",
                                                                "replace",
                                                                "append",
                                                                "prepend",
                                                                "cas",
                                                                "incr",
                                                                "decr",
                                                                "touch",
                                                                "delete",
                                                                "version",
                                                                "quit",
                                                                "stats",
                                                                "watch",
                                                                "flush_all",
                                                                "verbosity",
                                                                "slabs",
                                                                "lru",
                                                                "lru_crawler",
                                                                "cache_memlimit",
                                                                "shutdown",
                                                                "extstore",
                                                                "refresh_certs",
                                                                "debugtime",
                                                                "debugitem",
                                                                "misbehave"};

constexpr std::string_view name_of(Command command) {
  return kNames[static_cast<std::size_t>(command)];
}
static_assert(name_of(Command::Mg) == "mg" && name_of(Command::Get) == "get");
static_assert(name_of(Command::Cas) == "cas" && name_of(Command::Delete) == "delete");
static_assert(name_of(Command::Misbehave) == "misbehave");

Command if_named(std::string_view word, Command command) {
  return word == name_of(command) ? command : Command::Unknown;
}

Command find_meta(std::string_view word) {
  if (word[0] != 'm') {
    return Command::Unknown;
  }
  switch (word[1]) {
    case 'g':
      return Command::Mg;
    case 's':
      return Command::Ms;
    case 'd':
      return Command::Md;
    case 'n':
      return Command::Mn;
    case 'a':
      return Command::Ma;
    case 'e':
      return Command::Me;
    default:
      return Command::Unknown;
  }
}

Command find_among(std::string_view word, Command first, Command last) {
  for (auto index = static_cast<std::size_t>(first); index <= static_cast<std::size_t>(last);
       ++index) {
    if (word == kNames[index]) {
      return static_cast<Command>(index);
    }
  }
  return Command::Unknown;
}

}  // namespace

std::string_view command_name(Command command) noexcept {
  return name_of(command);
}

Command find_command(std::string_view word) noexcept {
  if (word.size() < 2) {
    return Command::Unknown;
  }
  if (word.size() == 2) {
    return find_meta(word);
  }
  switch (word[0]) {
    case 'g':
      return find_among(word, Command::Get, Command::Gats);
    case 's':
      if (word == "set") {
        return Command::Set;
      }
      return find_among(word, Command::Version, Command::Misbehave);
    case 'a':
      return word == "add" ? Command::Add : if_named(word, Command::Append);
    case 'c':
      return word == "cas" ? Command::Cas : if_named(word, Command::CacheMemlimit);
    case 'd':
      if (word == "delete") {
        return Command::Delete;
      }
      return word == "decr" ? Command::Decr
                            : find_among(word, Command::Debugtime, Command::Debugitem);
    case 'i':
      return if_named(word, Command::Incr);
    case 'p':
      return if_named(word, Command::Prepend);
    case 't':
      return if_named(word, Command::Touch);
    case 'r':
      return word == "replace" ? Command::Replace : if_named(word, Command::RefreshCerts);
    default:
      return find_among(word, Command::Version, Command::Misbehave);
  }
}

}  // namespace kvferry::memcache
