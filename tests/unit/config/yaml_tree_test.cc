#include "config/yaml_tree.h"

#include <string>

#include <gtest/gtest.h>

namespace kvferry::config {
namespace {

TreeOutcome parse(std::string text) {
  return parse_tree(Source("t.yml", std::move(text)));
}

std::string problem_of(std::string text) {
  const TreeOutcome outcome = parse(std::move(text));
  return outcome.problem ? outcome.problem->message : "none";
}

TEST(YamlTree, KeepsTextsKindsAndPlaces) {
  const TreeOutcome outcome = parse("a:\n  b: 0123\n  c: [x, 'y z']\n  d: {e: yes}\n");
  ASSERT_TRUE(outcome.tree);
  const Node& pool = *outcome.tree->root()->find("a")->value;
  ASSERT_TRUE(pool.is_mapping());
  const Node& b = *pool.find("b")->value;
  EXPECT_EQ(b.text, "0123");
  EXPECT_FALSE(b.is_quoted);
  EXPECT_EQ(b.start.line, 2U);
  EXPECT_EQ(b.start.column, 6U);
  EXPECT_EQ(b.width(), 4U);
  const Node& c = *pool.find("c")->value;
  ASSERT_EQ(c.items.size(), 2U);
  EXPECT_EQ(c.items[1]->text, "y z");
  EXPECT_TRUE(c.items[1]->is_quoted);
  EXPECT_EQ(c.items[1]->width(), 5U);
  EXPECT_EQ(pool.find("d")->value->find("e")->value->text, "yes");
  EXPECT_EQ(pool.find("x"), nullptr);
}

TEST(YamlTree, TellsAbsentFromEmpty) {
  const TreeOutcome outcome = parse("a:\nb: ''\n");
  ASSERT_TRUE(outcome.tree);
  EXPECT_TRUE(outcome.tree->root()->find("a")->value->is_absent());
  EXPECT_FALSE(outcome.tree->root()->find("b")->value->is_absent());
}

TEST(YamlTree, CountsColumnsInCharacters) {
  const TreeOutcome outcome = parse("\xc3\xa9\xc3\xa9: x\n");
  ASSERT_TRUE(outcome.tree);
  EXPECT_EQ(outcome.tree->root()->entries[0].value->start.column, 5U);
}

TEST(YamlTree, AliasesShareTheirNode) {
  const TreeOutcome outcome = parse("a: &x [1]\nb: *x\n");
  ASSERT_TRUE(outcome.tree);
  const Node& root = *outcome.tree->root();
  EXPECT_EQ(root.find("a")->value, root.find("b")->value);
}

TEST(YamlTree, HasNoRootWithoutContent) {
  for (const char* text : {"", "\n\n", "# only a comment\n"}) {
    const TreeOutcome outcome = parse(text);
    ASSERT_TRUE(outcome.tree);
    EXPECT_EQ(outcome.tree->root(), nullptr);
  }
}

TEST(YamlTree, RefusesWhatIsNotUnderstood) {
  EXPECT_EQ(problem_of("a: !x 1\n"),
            "cannot read YAML: tags (!x) are not supported; leave the tag out");
  EXPECT_EQ(problem_of("a: 1\n---\nb: 2\n"),
            "cannot read YAML: a second document begins here; one file holds one");
  EXPECT_EQ(problem_of("a:\n\tb: 1\n"), "cannot read YAML: tab used for indentation; use blanks");
  EXPECT_EQ(problem_of("a: &x {b: 1}\nc: {<<: *x}\n"),
            "cannot read YAML: merge keys (<<) are not supported; write the keys out");
  EXPECT_EQ(problem_of("[a]: 1\n"), "cannot read YAML: a key must be text, found a list");
  EXPECT_EQ(problem_of("a: &x [*x]\n"),
            "cannot read YAML: alias '*x' has no anchor that ends before it");
}

TEST(YamlTree, AcceptsADepthOf16AndRefusesOneMore) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_EQ(problem_of(nested(kDepthMax - 1)), "none");
  EXPECT_EQ(problem_of(nested(kDepthMax)), "none");
  EXPECT_EQ(problem_of(nested(kDepthMax + 1)), "cannot read YAML: nested deeper than 16 levels");
}

TEST(YamlTree, CountsTheDepthThatAliasesAdd) {
  // The anchor is 10 deep; 6 more around its alias make 16, 7 make 17.
  const std::string anchor = "- &x [[[[[[[[[[]]]]]]]]]]\n- ";
  EXPECT_EQ(problem_of(anchor + "[[[[[*x]]]]]\n"), "none");
  EXPECT_EQ(problem_of(anchor + "[[[[[[*x]]]]]]\n"),
            "cannot read YAML: nested deeper than 16 levels");
}

TEST(YamlTree, BoundsWhatAliasesExpandTo) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int level = 1; level < 8; ++level) {
    const std::string before = "*a" + std::to_string(level - 1);
    bomb += "a" + std::to_string(level) + ": &a" + std::to_string(level) + " [";
    for (int count = 0; count < 10; ++count) {
      bomb += before + " , ";
    }
    bomb += "x]\n";
  }
  EXPECT_EQ(problem_of(bomb), "cannot read YAML: aliases expand to more than 1048576 values");
}

TEST(YamlTree, RefusesFilesAboveOneMebibyte) {
  const std::string head = "a: b\n#";
  const std::string fits = head + std::string(kFileBytesMax - head.size(), 'x');
  EXPECT_EQ(problem_of(fits), "none");
  EXPECT_EQ(problem_of(fits + "x"),
            "cannot read YAML: the file has 1048577 bytes; at most 1048576 are read");
}

TEST(YamlTree, NamesTheLineOfBytesThatAreNotUtf8) {
  const TreeOutcome outcome = parse("a: b\nc: \xff\n");
  ASSERT_TRUE(outcome.problem);
  EXPECT_EQ(outcome.problem->where.line, 2U);
}

TEST(YamlTree, TellsWhereABrokenCollectionBegan) {
  EXPECT_EQ(problem_of("a: [1,\n  2\nb: 3\n"),
            "cannot read YAML: did not find expected ',' or ']', while parsing a flow sequence "
            "that begins at line 1");
}

}  // namespace
}  // namespace kvferry::config
