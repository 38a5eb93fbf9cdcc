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

  /// A folder below folder_ with a file a.yml.
  void make_release(const std::string& name, std::string_view text) {
    std::filesystem::create_directory(folder_.file(name));
    folder_.write(name + "/a.yml", text);
  }
  /// Makes `link` lead to `target` in one step, as deployments do.
  void swap_link(const std::string& link, const std::string& target) {
    std::filesystem::create_symlink(target, folder_.file("fresh_link"));
    std::filesystem::rename(folder_.file("fresh_link"), folder_.file(link));
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

TEST_P(ConfigWatchTest, TellsOfASwappedLinkBesideTheFile) {
  // What Kubernetes makes of a ConfigMap: the file is a link through a link that is swapped.
  make_release("..v1", "one");
  make_release("..v2", "two");
  make_release("..v3", "three");
  swap_link("..data", "..v1");
  swap_link("app.yml", "..data/a.yml");
  watch({folder_.file("app.yml")});
  swap_link("..data", "..v2");
  expect_changes(1);
  folder_.write("..v2/a.yml", "two, changed");
  expect_changes(2);
  folder_.write("..v1/a.yml", "nobody reads it any more");
  folder_.write("..v2/b.yml", "nor this");
  rig_.run_for(base::Millis(300));
  EXPECT_EQ(changes_, 2);
  swap_link("..data", "..v3");
  expect_changes(3);
}

TEST_P(ConfigWatchTest, TellsOfASwappedLinkInAnotherFolder) {
  make_release("v1", "one");
  make_release("v2", "two");
  std::filesystem::create_directory(folder_.file("etc"));
  swap_link("current", folder_.file("v1"));
  swap_link("etc/app.yml", "../current/a.yml");
  watch({folder_.file("etc/app.yml")});
  swap_link("current", folder_.file("v2"));
  expect_changes(1);
  folder_.write("v2/a.yml", "written in place");
  expect_changes(2);
}

TEST_P(ConfigWatchTest, TellsOfASwappedLinkToAFolder) {
  make_release("v1", "one");
  make_release("v2", "two");
  swap_link("current", "v1");
  watch({folder_.file("current")});
  swap_link("current", "v2");
  expect_changes(1);
  folder_.write("v2/b.yml", "new");
  expect_changes(2);
}

TEST_P(ConfigWatchTest, OfAFolderWhatItsLinksLeadToMatters) {
  make_release("elsewhere", "one");
  std::filesystem::create_directory(folder_.file("etc"));
  swap_link("etc/a.yml", "../elsewhere/a.yml");
  watch({folder_.file("etc")});
  folder_.write("elsewhere/a.yml", "two");
  expect_changes(1);
}

TEST_P(ConfigWatchTest, ALinkThatLeadsNowhereIsWaitedFor) {
  swap_link("app.yml", "missing.yml");
  swap_link("circle", "circle");
  watch({folder_.file("app.yml"), folder_.file("circle")});
  folder_.write("missing.yml", "here it is");
  expect_changes(1);
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
