#include "pool/merge_text.h"

#include <algorithm>

#include "pool/failure_text.h"

namespace kvferry::pool {

namespace {

/// What twemproxy says when a part of a command fails, whatever the reason.
constexpr std::string_view kTwemproxyPartLine = "-ERR Invalid argument\r\n";

bool is_twemproxy(const PoolOptions& options) {
  return options.error_style == ErrorStyle::Twemproxy;
}

char to_upper(char letter) {
  return letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter;
}

}  // namespace

std::string partial_line(const PoolOptions& options, const PartialResult& result) {
  if (is_twemproxy(options)) {
    return std::string(kTwemproxyPartLine);
  }
  std::string name(result.command);
  std::transform(name.begin(), name.end(), name.begin(), to_upper);
  std::replace(name.begin(), name.end(), '|', ' ');
  std::string line = "-PARTIAL kvferry: " + name + " finished on " + std::to_string(result.done) +
                     " of " + std::to_string(result.total) + " shards (" +
                     std::to_string(result.counted) + " counted); first failure: ";
  for (const char byte : error_text(result.first_failure)) {
    line += byte == '\r' || byte == '\n' ? ' ' : byte;
  }
  line.resize(std::min(line.size(), kFailureLineBytesMax - 2));
  return line + "\r\n";
}

std::string_view error_text(std::string_view reply) noexcept {
  if (reply.starts_with('!')) {
    reply.remove_prefix(std::min(reply.find('\n'), reply.size() - 1));
  }
  reply.remove_prefix(reply.empty() ? 0 : 1);
  return reply.ends_with("\r\n") ? reply.substr(0, reply.size() - 2) : reply;
}

std::string_view part_failure(const PoolOptions& options, std::string_view reply) noexcept {
  return is_twemproxy(options) ? kTwemproxyPartLine : reply;
}

std::string bad_part_line(const PoolOptions& options) {
  return "-BADREPLY kvferry: backend reply does not fit the command" + redis_place(options, {}) +
         "\r\n";
}

std::string lost_part_line(const PoolOptions& options) {
  return failure_line(options, {}, Failure{.kind = FailureKind::Closed, .may_have_run = true});
}

std::string too_large_line(const PoolOptions& options) {
  return "-OVERLOAD kvferry: merged reply is larger than " +
         std::to_string(options.redis.max_merge_bytes) + " bytes" + redis_place(options, {}) +
         "\r\n";
}

}  // namespace kvferry::pool
