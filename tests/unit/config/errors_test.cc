// One broken file for each way to break one: tests/data/config/errors/NAME.yml and NAME.txt, which
// has the code of each problem and the exact text.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "config/loader.h"
#include "config/text_file.h"

namespace kvferry::config {
namespace {

std::filesystem::path folder() {
  return std::filesystem::path(KVF_TEST_DATA) / "data" / "config" / "errors";
}

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    if (entry.path().extension() == ".yml") {
      names.push_back(entry.path().stem().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string read(const std::filesystem::path& path) {
  base::Result<std::string> text = read_text_file(path.string(), std::size_t{1} << 20);
  return text ? std::move(*text) : "missing: " + path.string();
}

Loaded load_case(const std::string& name) {
  return load_text(name + ".yml", read(folder() / (name + ".yml")));
}

std::string report(const Loaded& loaded) {
  std::string out;
  for (const Problem& problem : loaded.problems) {
    out += "[" + problem.code + "] " + to_text(problem);
  }
  return out;
}

class BrokenFile : public testing::TestWithParam<std::string> {};

TEST_P(BrokenFile, IsAnsweredWithThisText) {
  const Loaded loaded = load_case(GetParam());
  const std::string got = report(loaded);
  const std::filesystem::path expected = folder() / (GetParam() + ".txt");
  // For whoever changes a text: run once with this set, then read the difference.
  if (std::getenv("KVFERRY_UPDATE_EXPECTED") != nullptr) {
    std::FILE* file = std::fopen(expected.c_str(), "wb");
    ASSERT_NE(file, nullptr);
    ASSERT_EQ(std::fwrite(got.data(), 1, got.size(), file), got.size());
    ASSERT_EQ(std::fclose(file), 0);
  }
  EXPECT_EQ(got, read(expected));
}

TEST_P(BrokenFile, HasAModelOnlyWithoutErrors) {
  const Loaded loaded = load_case(GetParam());
  const bool has_error =
      std::any_of(loaded.problems.begin(), loaded.problems.end(),
                  [](const Problem& problem) { return problem.severity == Severity::Error; });
  EXPECT_EQ(loaded.model.has_value(), !has_error);
  EXPECT_FALSE(loaded.problems.empty());
}

TEST_P(BrokenFile, NeverShowsASecret) {
  EXPECT_EQ(report(load_case(GetParam())).find("hunter"), std::string::npos);
  EXPECT_EQ(to_json(load_case(GetParam()).problems).find("hunter"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Errors, BrokenFile, testing::ValuesIn(case_names()),
                         [](const auto& tested) { return tested.param; });

TEST(Errors, EveryCodeHasAFile) {
  std::set<std::string> seen;
  for (const std::string& name : case_names()) {
    for (const Problem& problem : load_case(name).problems) {
      seen.insert(problem.code);
    }
  }
  // E-file and W40 are about files other than the one that is read; loader_test and secret_test
  // have them.
  const std::set<std::string> expected = {
      "E-yaml",   "E-root", "E-unknown", "E-dialect", "E-dup",     "E-empty",
      "E-bool",   "E-num",  "E-range",   "E-enum",    "E-addr",    "E-server",
      "E-weight", "E-tag",  "E-list",    "E-type",    "E-missing", "E-unsupported",
      "W10",      "W11",    "N01",       "N02"};
  EXPECT_EQ(seen, expected);
}

}  // namespace
}  // namespace kvferry::config
