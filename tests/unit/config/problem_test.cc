#include "config/problem.h"

#include <gtest/gtest.h>

namespace kvferry::config {
namespace {

Problem example() {
  Problem problem;
  problem.code = "E-range";
  problem.where = {"redis.yml", 7, 12};
  problem.width = 2;
  problem.pool = "beta";
  problem.key = "timeout";
  problem.message = "'timeout' must be \"something\"";
  problem.hint = "leave it out";
  problem.source_line = "  timeout: -1";
  return problem;
}

TEST(Problem, ShowsTheLineWithAMarkAndAHint) {
  EXPECT_EQ(to_text(example()),
            "redis.yml:7:12: error: pool 'beta': 'timeout' must be \"something\"\n"
            "    7 |   timeout: -1\n"
            "      |            ^^\n"
            "  hint: leave it out\n");
}

TEST(Problem, NamesThePoolOnce) {
  Problem problem = example();
  problem.severity = Severity::Notice;
  problem.message = "pool 'beta' has no timeout";
  EXPECT_EQ(headline(problem), "redis.yml:7:12: notice: pool 'beta' has no timeout");
}

TEST(Problem, NamesTheFileAloneWithoutALine) {
  Problem problem;
  problem.where.file = "a.yml";
  problem.message = "cannot read 'a.yml': No such file or directory";
  EXPECT_EQ(to_text(problem), "a.yml: error: cannot read 'a.yml': No such file or directory\n");
}

TEST(Problem, NeverSendsControlBytesToATerminal) {
  Problem problem = example();
  problem.source_line = "\x1b[31m\ttimeout: \xff";
  const std::string text = to_text(problem);
  EXPECT_NE(text.find("    7 |  [31m timeout: ?\n"), std::string::npos) << text;
}

TEST(Problem, CutsTextBetweenCharacters) {
  EXPECT_EQ(printable("a\xc3\xa9", 3), "a\xc3\xa9");
  EXPECT_EQ(printable("a\xc3\xa9", 2), "a");
  EXPECT_EQ(printable("a\xc3", 3), "a?");
}

TEST(Problem, WritesJson) {
  EXPECT_EQ(to_json({}), "[]\n");
  EXPECT_EQ(to_json({example()}),
            "[\n {\"file\": \"redis.yml\", \"line\": 7, \"column\": 12, \"severity\": \"error\", "
            "\"code\": \"E-range\", \"pool\": \"beta\", \"key\": \"timeout\", \"message\": "
            "\"'timeout' must be \\\"something\\\"\", \"hint\": \"leave it out\"}\n]\n");
}

TEST(ProblemList, KeepsTwentyErrorsAndEveryWarning) {
  ProblemList list;
  for (std::size_t count = 0; count < kErrorsMax - 1; ++count) {
    list.add(example());
  }
  EXPECT_FALSE(list.is_full());
  list.add(example());
  EXPECT_TRUE(list.is_full());
  list.add(example());
  Problem warning = example();
  warning.severity = Severity::Warning;
  list.add(warning);
  EXPECT_EQ(list.take().size(), kErrorsMax + 1);
  EXPECT_FALSE(list.has_errors());
}

TEST(ProblemList, OrdersByFileAndPlace) {
  ProblemList list;
  const auto add = [&list](const char* file, std::uint32_t line, std::uint32_t column) {
    Problem problem;
    problem.where = {file, line, column};
    list.add(problem);
  };
  add("b.yml", 9, 1);
  add("a.yml", 1, 1);
  add("b.yml", 2, 5);
  add("b.yml", 2, 3);
  const std::vector<Problem> sorted = list.take();
  ASSERT_EQ(sorted.size(), 4U);
  EXPECT_EQ(sorted[0].where, (Position{"b.yml", 2, 3}));
  EXPECT_EQ(sorted[1].where, (Position{"b.yml", 2, 5}));
  EXPECT_EQ(sorted[2].where, (Position{"b.yml", 9, 1}));
  EXPECT_EQ(sorted[3].where, (Position{"a.yml", 1, 1}));
}

}  // namespace
}  // namespace kvferry::config
