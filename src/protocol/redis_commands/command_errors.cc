#include "protocol/redis_commands/command_errors.h"

namespace kvferry::redis {
namespace {

/// The server prints arguments as texts that end at a NUL.
void append_part(std::string_view bytes, std::size_t bytes_max, std::string& text) {
  const std::string_view part = bytes.substr(0, bytes_max);
  for (const char byte : part.substr(0, part.find('\0'))) {
    text.push_back(byte == '\r' || byte == '\n' ? ' ' : byte);
  }
}

void append_quoted(std::string_view bytes, std::size_t bytes_max, std::string& text) {
  text.push_back('\'');
  append_part(bytes, bytes_max, text);
  text.push_back('\'');
}

}  // namespace

void append_unknown_command(std::span<const std::string_view> args, std::string& text) {
  text.append("ERR unknown command ");
  append_quoted(args.empty() ? std::string_view() : args[0], kErrorPartBytesMax, text);
  text.append(", with args beginning with: ");
  const std::size_t begin = text.size();
  for (std::size_t at = 1; at < args.size() && text.size() - begin < kErrorPartBytesMax; ++at) {
    append_quoted(args[at], kErrorPartBytesMax - (text.size() - begin), text);
    text.push_back(' ');
  }
}

void append_unknown_subcommand(std::span<const std::string_view> args, std::string& text) {
  text.append("ERR unknown subcommand ");
  append_quoted(args.size() < 2 ? std::string_view() : args[1], kErrorPartBytesMax, text);
  text.append(". Try ");
  for (const char byte : args.empty() ? std::string_view() : args[0]) {
    text.push_back(byte >= 'a' && byte <= 'z' ? static_cast<char>(byte - 'a' + 'A') : byte);
  }
  text.append(" HELP.");
}

void append_wrong_count(const Command& command, std::string& text) {
  // An EXEC that cannot run ends its transaction, and says so.
  text.append(command.name == "exec"
                  ? "EXECABORT Transaction discarded because of: wrong number of arguments for '"
                  : "ERR wrong number of arguments for '")
      .append(command.name)
      .append("' command");
}

std::string_view key_error(const Command& command, KeyOutcome outcome) noexcept {
  switch (outcome) {
    case KeyOutcome::BadCount:
      return command.name.starts_with("fcall") ? "ERR Bad number of keys provided"
                                               : "ERR value is not an integer or out of range";
    case KeyOutcome::CountTooLarge:
      return "ERR Number of keys can't be greater than number of args";
    case KeyOutcome::CountNegative:
      return "ERR Number of keys can't be negative";
    case KeyOutcome::Found:
    case KeyOutcome::Refused:
    case KeyOutcome::NotHere:
      break;
  }
  return {};
}

bool check_count(const Resolution& resolution, std::span<const std::string_view> args,
                 std::uint32_t arg_count, std::string& text) {
  if (resolution.state == Resolution::State::UnknownSubcommand) {
    append_unknown_subcommand(args, text);
    return false;
  }
  if (!has_good_count(*resolution.command, arg_count)) {
    append_wrong_count(*resolution.command, text);
    return false;
  }
  return true;
}

}  // namespace kvferry::redis
