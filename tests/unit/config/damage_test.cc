// Random damage to good files: the reader never crashes, and always names a line.
#include <random>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "config/loader.h"
#include "config/show.h"
#include "config/text_file.h"

namespace kvferry::config {
namespace {

constexpr int kRounds = 3000;

std::string example(const char* name) {
  const std::string path = std::string(KVF_TEST_DATA) + "/../examples/" + name;
  base::Result<std::string> text = read_text_file(path, kFileBytesMax);
  EXPECT_TRUE(text) << path;
  return text ? *text : "";
}

/// Changes, removes, doubles or inserts a few bytes or pieces that mean something to YAML.
std::string damage(std::string text, std::mt19937& random) {
  constexpr std::string_view kPieces[] = {"\n",
                                          ":",
                                          " ",
                                          "- ",
                                          "[",
                                          "]",
                                          "{",
                                          "}",
                                          "\t",
                                          "*a",
                                          "&a",
                                          "!x",
                                          "<<",
                                          "---",
                                          "\"",
                                          "'",
                                          "#",
                                          "|\n",
                                          "\xff",
                                          "\xc3\xa9",
                                          "?",
                                          ",",
                                          "99999999999999999999"};
  const auto below = [&random](std::size_t limit) {
    return limit == 0 ? 0 : std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
  };
  for (std::size_t times = 1 + below(4); times > 0; --times) {
    const std::size_t at = below(text.size() + 1);
    switch (below(4)) {
      case 0:
        text.insert(at, kPieces[below(std::size(kPieces))]);
        break;
      case 1:
        text.erase(at, 1 + below(20));
        break;
      case 2:
        text.insert(at, text.substr(below(text.size() + 1), below(60)));
        break;
      default:
        if (at < text.size()) {
          text[at] = static_cast<char>(below(256));
        }
        break;
    }
  }
  return text;
}

TEST(Damage, IsAlwaysAnsweredWithALine) {
  const std::string originals[] = {example("nutcracker.yml"), example("memcache.yml")};
  const unsigned seed = 20240607;
  std::mt19937 random(seed);
  int refused = 0;
  for (int round = 0; round < kRounds; ++round) {
    const std::string text = damage(originals[static_cast<std::size_t>(round) % 2], random);
    const Loaded loaded = load_text("t.yml", text);
    refused += loaded.model ? 0 : 1;
    for (const Problem& problem : loaded.problems) {
      ASSERT_GE(problem.where.line, 1U) << "seed " << seed << " round " << round << "\n" << text;
      ASSERT_GE(problem.where.column, 1U) << "seed " << seed << " round " << round << "\n" << text;
      ASSERT_FALSE(problem.message.empty());
    }
    if (loaded.model) {
      const Loaded again = load_text("s.yml", to_yaml(*loaded.model, YamlForm::Everything));
      ASSERT_TRUE(loaded.model->pools.empty() || again.model)
          << "seed " << seed << " round " << round << "\n"
          << text << again.text();
    }
  }
  // The damage must do something, and not always everything.
  EXPECT_GT(refused, kRounds / 2);
  EXPECT_LT(refused, kRounds);
}

}  // namespace
}  // namespace kvferry::config
