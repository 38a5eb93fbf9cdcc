#include "app/config_watch.h"

#include <gtest/gtest.h>

#include "tests/support/loop_rig.h"
#include "tests/support/temp_folder.h"

namespace kvferry::app {
namespace {

class ConfigWatchTest : public testing::TestWithParam<test::Engine> {
 public:
  void on_changed() { ++changes_; }

 protected:
  ConfigWatchTest() : rig_(GetParam()) { folder_.write("a.yml", "one"); }

  void watch(const std::vector<std::string>& paths) {
    auto opened = ConfigWatch::open(*rig_.loop, paths,
                                    base::Delegate<void()>::to<&ConfigWatchTest::on_changed>(this));
    ASSERT_TRUE(opened.has_value()) << opened.error().text();
    watch_ = std::move(opened).value();
  }
  void expect_changes(int count) {
    ASSERT_TRUE(rig_.run_until([&] { return changes_ >= count; }));
    rig_.run_for(base::Millis(250));  // Longer than events are gathered.
    EXPECT_EQ(changes_, count);
  }
  void expect_nothing() {
    rig_.run_for(base::Millis(300));
    EXPECT_EQ(changes_, 0);
  }

  test::LoopRig rig_;
  test::TempFolder folder_;
  std::unique_ptr<ConfigWatch> watch_;
  int changes_ = 0;
};

TEST_P(ConfigWatchTest, TellsOfAWrittenFileOnce) {
  watch({folder_.file("a.yml")});
  folder_.write("a.yml", "two");
  rig_.run_for(base::Millis(20));
  folder_.write("a.yml", "three");
  EXPECT_EQ(changes_, 0) << "told before the writing had settled";
  expect_changes(1);
  folder_.write("a.yml", "four");
  expect_changes(2);
}

TEST_P(ConfigWatchTest, TellsOfAFileThatIsReplacedByRenaming) {
  watch({folder_.file("a.yml")});
  folder_.write("new", "two");
  expect_nothing();
  std::filesystem::rename(folder_.file("new"), folder_.file("a.yml"));
  expect_changes(1);
}

TEST_P(ConfigWatchTest, OtherFilesOfTheFolderDoNotMatter) {
  watch({folder_.file("a.yml")});
  folder_.write("b.yml", "other");
  expect_nothing();
}

TEST_P(ConfigWatchTest, OfAFolderEveryFileMatters) {
  watch({folder_.path()});
  folder_.write("b.yml", "other");
  expect_changes(1);
  std::filesystem::remove(folder_.file("a.yml"));
  expect_changes(2);
}

TEST_P(ConfigWatchTest, AFolderThatIsMissingIsAnError) {
  auto opened = ConfigWatch::open(*rig_.loop, {folder_.file("none/a.yml")},
                                  base::Delegate<void()>::to<&ConfigWatchTest::on_changed>(this));
  ASSERT_FALSE(opened.has_value());
  EXPECT_NE(opened.error().text().find("none"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Engines, ConfigWatchTest, testing::ValuesIn(test::kEngines),
                         test::name_of);

}  // namespace
}  // namespace kvferry::app
