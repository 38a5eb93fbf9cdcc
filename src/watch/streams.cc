#include "watch/streams.h"

#include <algorithm>
#include <array>

namespace kvferry::watch {
namespace {

/// In the order of the enumerators, which is the order in which shortened names are looked for.
constexpr std::array<std::string_view, 10> kNames = {
    "rawcmds",    "evictions", "fetchers",    "mutations", "sysevents",
    "connevents", "proxyreqs", "proxyevents", "proxyuser", "deletions"};
static_assert(kNames[static_cast<std::size_t>(Stream::Deletions)] == "deletions");

bool is_literal(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
         (byte >= '0' && byte <= '9') || byte == '-' || byte == '.' || byte == '_' || byte == '~';
}

}  // namespace

std::optional<StreamMask> find_streams(std::string_view words) noexcept {
  StreamMask mask = 0;
  while (!words.empty()) {
    const std::string_view word = words.substr(0, words.find(' '));
    words.remove_prefix(std::min(words.size(), word.size() + 1));
    if (word.empty()) {
      continue;
    }
    const auto* const found =
        std::find_if(kNames.begin(), kNames.end(),
                     [&](std::string_view name) { return name.starts_with(word); });
    if (found == kNames.end()) {
      return std::nullopt;
    }
    mask |= StreamMask{1} << static_cast<unsigned>(found - kNames.begin());
  }
  return mask == 0 ? mask_of(Stream::Fetchers) : mask;
}

void append_uri(std::string& out, std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  for (const char byte : bytes) {
    if (is_literal(byte)) {
      out += byte;
      continue;
    }
    const auto value = static_cast<unsigned char>(byte);
    out += '%';
    out += kDigits[value >> 4U];
    out += kDigits[value & 15U];
  }
}

}  // namespace kvferry::watch
