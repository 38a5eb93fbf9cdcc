// What is made of the arguments of Redis requests: the command that they name, the errors about it,
// its keys, and what COMMAND says of it.
//
// Byte 0 says how many of the last arguments have not come (two bits); the rest is arguments, with
// line ends between them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/fuzz_support.h"
#include "protocol/redis_commands/command_errors.h"
#include "protocol/redis_commands/command_replies.h"
#include "protocol/redis_commands/command_table.h"
#include "protocol/redis_commands/key_places.h"
#include "protocol/redis_commands/packed_word.h"
#include "protocol/resp/reply_scanner.h"

namespace kvferry::redis {
namespace {

using fuzz::require;
using Args = std::span<const std::string_view>;

/// Longer than the longest name, twice the longest part, and the words around them.
constexpr std::size_t kErrorBytesMax = 512;

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> args;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    args.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return args;
}

/// The command of that name, found the slow way.
const Command* search(std::string_view name) {
  const auto is_it = [name](const Command& one) { return equal_letters(one.name, name); };
  const auto found = std::ranges::find_if(all_commands(), is_it);
  return found == all_commands().end() ? nullptr : &*found;
}

void check_resolution(Args args, const Resolution& named) {
  const bool has_bar = !args.empty() && args[0].find('|') != std::string_view::npos;
  const Command* const top = args.empty() || has_bar ? nullptr : search(args[0]);
  require((top == nullptr) == (named.state == Resolution::State::UnknownCommand));
  if (top == nullptr || !top->is_container() || args.size() < 2) {
    require(named.command == (top == nullptr ? &unknown_command() : top));
    return;
  }
  const Command* const part = search(std::string(args[0]).append("|").append(args[1]));
  require((part == nullptr) == (named.state == Resolution::State::UnknownSubcommand));
  require(named.command == (part == nullptr ? top : part));
}

void check_text(std::string_view text) {
  require(text.size() <= kErrorBytesMax);
  require(text.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos);
}

/// `whole` are all arguments, of which `args` have come.
void check_keys(const Command& command, Args whole, Args args) {
  KeyPlaces all;
  const KeyOutcome outcome = find_keys(command, whole, all);
  require(outcome != KeyOutcome::NotHere && all.size() < std::max<std::size_t>(whole.size(), 1));
  std::vector<bool> seen(whole.size());
  for (const KeyPlace& place : all.all()) {
    require(place.index > 0 && place.index < whole.size() && !seen[place.index] &&
            place.access != 0);
    seen[place.index] = true;
  }
  if (command.sole_key != 0 && command.sole_key < whole.size()) {
    require(outcome == KeyOutcome::Found && all.size() == 1 &&
            all.all()[0].index == command.sole_key);
  }
  check_text(key_error(command, outcome));
  // What is found early is what is found in the end.
  KeyPlaces early;
  if (find_keys(command, args, static_cast<std::uint32_t>(whole.size()), early) ==
      KeyOutcome::Found) {
    require(outcome == KeyOutcome::Found);
    require(std::ranges::equal(early.all(), all.all(), {}, &KeyPlace::index, &KeyPlace::index));
    require(std::ranges::all_of(
        early.all(), [args](const KeyPlace& place) { return place.index < args.size(); }));
  }
}

void check_reply(Args args) {
  std::string text;
  resp::ReplyWriter reply(resp::Version::Three, text);
  compose_command_reply(args, {}, reply);
  resp::ReplyScanner scanner;
  const resp::ReplyScanner::Scan scan = scanner.scan(text);
  require(scan.state == resp::ReplyScanner::State::End && scan.taken_bytes == text.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  const std::vector<std::string_view> whole =
      split({reinterpret_cast<const char*>(data) + 1, size - 1});
  const Args args =
      Args(whole).first(whole.size() - std::min<std::size_t>(whole.size(), data[0] & 3U));
  const auto count = static_cast<std::uint32_t>(whole.size());
  const Resolution named = resolve(whole);
  check_resolution(whole, named);
  std::string text;
  append_unknown_command(whole, text);
  check_text(text);
  text.clear();
  const bool is_good = check_count(named, whole, count, text);
  require(is_good == text.empty());
  check_text(text);
  find_sort_patterns(whole);
  if (is_good) {
    check_keys(*named.command, whole, args);
  }
  if (is_good && named.command->name.starts_with("command")) {
    check_reply(whole);
  }
  return 0;
}

}  // namespace kvferry::redis
