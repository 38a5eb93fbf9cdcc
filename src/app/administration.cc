#include "app/administration.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <string_view>

#include "protocol/memcache/number.h"
#include "protocol/memcache/token_walker.h"

namespace kvferry::app {
namespace {

using memcache::Command;
using memcache::token_at;

constexpr std::string_view kOk = "OK\r\n";
constexpr std::string_view kError = "ERROR\r\n";
constexpr std::string_view kBadLine = "CLIENT_ERROR bad command line format\r\n";

constexpr std::uint32_t kMegabytesMin = 8;
constexpr std::uint32_t kMegabytesMax = std::uint32_t{1} << 24;
constexpr std::uint32_t kSleepMicrosMax = 1000000;

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_number(std::string_view word) {
  std::uint32_t value = 0;
  return memcache::read_number(word, value);
}

}  // namespace

bool Administration::run(const memcache::Request& request, std::string& out) {
  const std::string_view text = request.line_text();
  switch (request.command) {
    case Command::LruCrawler:
      return lru_crawler(text, out);
    case Command::Lru:
      lru(text, out);
      return true;
    case Command::Slabs:
      slabs(text, out);
      return true;
    case Command::CacheMemlimit:
      set_memory_limit(text, out);
      return true;
    case Command::Shutdown:
      shut_down(text, out);
      return true;
    case Command::RefreshCerts:
      refresh_certificates(out);
      return true;
    case Command::Debugtime:
      return setup_.has_test_hooks && move_clock(text, out);
    default:
      return false;
  }
}

bool Administration::lru_crawler(std::string_view text, std::string& out) {
  const std::string_view word = token_at(text, 1);
  const std::string_view value = token_at(text, 2);
  if (is_one_of(word, {"enable", "disable"})) {
    out += kOk;
  } else if (word == "crawl") {
    out += value.empty() ? kError : kOk;
  } else if (word == "sleep") {
    std::uint32_t micros = 0;
    if (!memcache::read_number(value, micros)) {
      out += kBadLine;
    } else if (micros > kSleepMicrosMax) {
      out += "CLIENT_ERROR sleep must be one second or less\r\n";
    } else {
      out += kOk;
    }
  } else if (word == "tocrawl") {
    out += is_number(value) ? kOk : kBadLine;
  } else {
    return false;
  }
  return true;
}

void Administration::lru(std::string_view text, std::string& out) {
  const std::string_view word = token_at(text, 1);
  const std::string_view value = token_at(text, 2);
  std::int32_t seconds = 0;
  const bool is_good = (word == "mode" && is_one_of(value, {"flat", "segmented"})) ||
                       (word == "tune" && !token_at(text, 5).empty()) ||
                       (word == "temp_ttl" && memcache::read_number(value, seconds));
  out += is_good ? kOk : kError;
}

void Administration::slabs(std::string_view text, std::string& out) {
  const std::string_view word = token_at(text, 1);
  if (word == "reassign" && !token_at(text, 3).empty()) {
    std::int32_t from = 0;
    std::int32_t to = 0;
    const bool is_good = memcache::read_number(token_at(text, 2), from) &&
                         memcache::read_number(token_at(text, 3), to);
    out += is_good ? kOk : kBadLine;
  } else if (word == "automove") {
    const std::string_view value = token_at(text, 2);
    out += is_number(value) || is_one_of(value, {"ratio", "freeratio"}) ? kOk : kError;
  } else {
    out += kError;
  }
}

void Administration::set_memory_limit(std::string_view text, std::string& out) const {
  std::uint32_t megabytes = 0;
  if (!memcache::read_number(token_at(text, 1), megabytes)) {
    out += kError;
  } else if (megabytes < kMegabytesMin) {
    out += "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m\r\n";
  } else if (megabytes > kMegabytesMax) {
    out += "MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust\r\n";
  } else {
    setup_.store->set_memory_limit(std::size_t{megabytes} << 20);
    out += kOk;
  }
}

void Administration::shut_down(std::string_view text, std::string& out) const {
  const std::string_view mode = token_at(text, 1);
  if (!setup_.allows_shutdown) {
    out += "SERVER_ERROR: shutdown not enabled\r\n";
  } else if (!mode.empty() && mode != "graceful") {
    out += "CLIENT_ERROR invalid shutdown mode\r\n";
  } else {
    setup_.end();
  }
}

void Administration::refresh_certificates(std::string& out) const {
  const std::string problem =
      setup_.refresh_certificates ? setup_.refresh_certificates() : std::string("TLS not enabled");
  out += problem.empty() ? std::string(kOk) : "Error " + problem + "\r\n";
}

bool Administration::move_clock(std::string_view text, std::string& out) const {
  const std::string_view word = token_at(text, 1);
  std::int32_t seconds = 0;
  if (word == "p") {
    setup_.clock->pause();
  } else if (word == "r") {
    setup_.clock->resume();
  } else if (memcache::read_number(word, seconds)) {
    setup_.clock->shift(seconds);
  } else {
    return false;
  }
  setup_.on_clock_moved();
  out += kOk;
  return true;
}

}  // namespace kvferry::app
