// Every command of the command table has a seed for the fuzzer of the request parser.
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include "protocol/memcache/request_parser.h"

namespace kvferry::memcache {
namespace {

/// Bytes in front of the stream of an input: limits and cuts.
constexpr std::size_t kPrefixBytes = 2;

using Seen = std::array<bool, kCommandCount>;

void note_commands(std::string_view stream, Seen& seen) {
  RequestParser parser{ParserLimits{}};
  while (!stream.empty()) {
    const auto parsed = parser.parse(stream);
    if (!parsed.is_done()) {
      return;
    }
    seen[static_cast<std::size_t>(parsed.value().command)] = true;
    stream.remove_prefix(parsed.value().size_bytes);
  }
}

TEST(FuzzSeeds, CoverEveryCommand) {
  Seen seen{};
  const std::filesystem::path folder =
      std::filesystem::path(KVF_TEST_DATA).parent_path() / "fuzz" / "corpus" / "request_parser";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    if (text.size() > kPrefixBytes) {
      note_commands(std::string_view(text).substr(kPrefixBytes), seen);
    }
  }
  for (std::size_t index = 1; index < kCommandCount; ++index) {
    EXPECT_TRUE(seen[index]) << "no seed for " << command_name(static_cast<Command>(index));
  }
}

}  // namespace
}  // namespace kvferry::memcache
