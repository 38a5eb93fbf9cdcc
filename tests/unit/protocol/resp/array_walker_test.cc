#include "protocol/resp/array_walker.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/splitter.h"

namespace kvferry::resp {
namespace {

struct Walked {
  std::vector<std::string> elements;
  std::int64_t count = -2;
  bool is_over = false;
  bool is_bad = false;
};

Walked walk(const test::Pieces& pieces) {
  Walked walked;
  ArrayWalker walker;
  std::string element;
  for (std::string_view piece : pieces) {
    while (!piece.empty()) {
      const ArrayWalker::Step step = walker.next(piece);
      if (step.found == ArrayWalker::Found::Bad) {
        walked.is_bad = true;
        return walked;
      }
      if (step.found == ArrayWalker::Found::Head) {
        walked.count = walker.count();
      } else if (walked.count != -2) {
        element += piece.substr(0, step.taken_bytes);
      }
      if (step.found == ArrayWalker::Found::Element) {
        walked.elements.push_back(std::move(element));
        element.clear();
      }
      piece.remove_prefix(step.taken_bytes);
    }
  }
  walked.is_over = walker.is_over();
  return walked;
}

TEST(ArrayWalker, FindsElementsWhereverTheBytesAreCut) {
  const std::vector<std::string> elements = {"$1\r\na\r\n",        "$-1\r\n", ":12\r\n",
                                             "*2\r\n:1\r\n+x\r\n", "_\r\n",   "-ERR no\r\n",
                                             "$0\r\n\r\n",         "*0\r\n"};
  std::string all = "*8\r\n";
  for (const std::string& element : elements) {
    all += element;
  }
  for (const test::Pieces& pieces : test::all_cuts(all)) {
    const Walked walked = walk(pieces);
    EXPECT_EQ(walked.elements, elements);
    EXPECT_EQ(walked.count, 8);
    EXPECT_TRUE(walked.is_over);
    EXPECT_FALSE(walked.is_bad);
  }
}

TEST(ArrayWalker, KnowsEmptyAndNullArraysAndSets) {
  EXPECT_EQ(walk({"*0\r\n"}).count, 0);
  EXPECT_EQ(walk({"*-1\r\n"}).count, -1);
  EXPECT_EQ(walk({"_\r\n"}).count, -1);
  EXPECT_TRUE(walk({"*-1\r\n"}).is_over);
  EXPECT_EQ(walk({"~1\r\n:1\r\n"}).elements, (std::vector<std::string>{":1\r\n"}));
}

TEST(ArrayWalker, IsNotOverBeforeItsLastElement) {
  EXPECT_FALSE(walk({"*2\r\n:1\r\n"}).is_over);
  EXPECT_FALSE(walk({"*2"}).is_over);
}

TEST(ArrayWalker, RefusesWhatIsNoArray) {
  for (const char* bytes :
       {"+OK\r\n", "$1\r\na\r\n", "*x\r\n", "*-2\r\n", "*1\n:1\r\n", "*0\r\n:1\r\n",
        "*1\r\n:1\r\n:2\r\n", "*1\r\n>1\r\n:1\r\n", "*1\r\nx", "*000000000000000000000001\r\n"}) {
    EXPECT_TRUE(walk({bytes}).is_bad) << bytes;
  }
}

}  // namespace
}  // namespace kvferry::resp
