#include "app/snapshot_file.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <sys/stat.h>

#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"

namespace kvferry::app {
namespace {

namespace fs = std::filesystem;

constexpr store::Instant kNow{1'000'000};

class SnapshotFileTest : public testing::Test {
 protected:
  static SnapshotStop go_on() { return SnapshotStop::GoOn; }
  std::string path() const { return folder_.file("snap"); }
  bool exists(const std::string& name) const { return fs::exists(folder_.file(name)); }
  std::string bytes_of(const std::string& name) const {
    std::ifstream in(folder_.file(name), std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }
  static void set(store::Store& store, const std::string& key, const std::string& value) {
    store.store(store::Key(key), {}, value, kNow);
  }
  static bool has(store::Store& store, const std::string& key) {
    return store.read(store::Key(key), {}, kNow, {}).status == store::ReadStatus::Hit;
  }
  /// What reading the file says is wrong with it.
  std::string refusal() {
    store::Store store(store::StoreConfig{});
    const auto read = read_snapshot(path(), store, kNow, go_on);
    return read ? "none" : read.error().text();
  }

  test::TempFolder folder_;
  store::Store store_{store::StoreConfig{}};
};

TEST_F(SnapshotFileTest, IsReadOnceAndKeptUnderAnotherName) {
  set(store_, "k", "v");
  set(store_, "large", std::string(100'000, 'x'));
  const auto written = write_snapshot(path(), store_, kNow, go_on);
  ASSERT_TRUE(written) << written.error().text();
  EXPECT_EQ(written->items, 2U);
  EXPECT_EQ(written->bytes, fs::file_size(path()));
  EXPECT_FALSE(exists("snap.new"));
  struct stat status{};
  ASSERT_EQ(stat(path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);

  store::Store after(store::StoreConfig{});
  const auto read = read_snapshot(path(), after, kNow, go_on);
  ASSERT_TRUE(read && *read);
  EXPECT_EQ((*read)->counts.stored, 2U);
  EXPECT_EQ((*read)->bytes, written->bytes);
  EXPECT_TRUE((*read)->is_whole);
  EXPECT_TRUE(has(after, "k") && has(after, "large"));
  EXPECT_FALSE(exists("snap"));
  EXPECT_TRUE(exists("snap.read"));
  const auto again = read_snapshot(path(), after, kNow, go_on);
  ASSERT_TRUE(again);
  EXPECT_FALSE(*again);
}

TEST_F(SnapshotFileTest, TakesThePlaceOfTheOldOneOnlyWhenItIsWhole) {
  set(store_, "k", "v");
  ASSERT_TRUE(write_snapshot(path(), store_, kNow, go_on));
  const std::string old = bytes_of("snap");
  for (int i = 0; i < 100'000; ++i) {
    set(store_, "k" + std::to_string(i), "v");
  }
  for (const SnapshotStop stop : {SnapshotStop::TimeIsOver, SnapshotStop::IsUnwanted}) {
    const auto written = write_snapshot(path(), store_, kNow, [&] { return stop; });
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().text(),
              "snapshot " + path() + ".new" +
                  (stop == SnapshotStop::TimeIsOver ? ": writing took longer than snapshot_timeout"
                                                    : ": a signal came while writing"));
    EXPECT_EQ(bytes_of("snap"), old);
    EXPECT_FALSE(exists("snap.new"));
  }
  // What a killed writer has left is no obstacle.
  folder_.write("snap.new", "half");
  ASSERT_TRUE(write_snapshot(path(), store_, kNow, go_on));
  EXPECT_GT(fs::file_size(path()), old.size());
  EXPECT_FALSE(exists("snap.new"));
}

TEST_F(SnapshotFileTest, ReadingStopsWhenItIsTold) {
  set(store_, "k", std::string(900'000, 'v'));
  ASSERT_TRUE(write_snapshot(path(), store_, kNow, go_on));
  const auto unwanted =
      read_snapshot(path(), store_, kNow, [] { return SnapshotStop::IsUnwanted; });
  ASSERT_FALSE(unwanted);
  EXPECT_TRUE(exists("snap"));
  const auto late = read_snapshot(path(), store_, kNow, [] { return SnapshotStop::TimeIsOver; });
  ASSERT_TRUE(late && *late);
  EXPECT_FALSE((*late)->is_whole);
  EXPECT_TRUE(exists("snap.read"));
}

TEST_F(SnapshotFileTest, WhatDoesNotFitIsNamedAndLeft) {
  folder_.write("snap", "hello");
  EXPECT_EQ(refusal(),
            "snapshot " + path() + ": byte 5: the snapshot is cut off: it has 5 bytes and no end");
  folder_.write("snap", std::string(50, 'x'));
  EXPECT_EQ(refusal(), "snapshot " + path() +
                           ": byte 0: this is no snapshot of kvferry, which begins with KVFSNAP");
  EXPECT_TRUE(exists("snap"));
  fs::remove(path());
  fs::create_directory(path());
  EXPECT_EQ(refusal(), "snapshot " + path() + ": is no plain file");
  EXPECT_EQ(check_snapshot_place(path()).error().text(), "snapshot " + path() + ": is a folder");
}

TEST_F(SnapshotFileTest, PlacesWithoutAFolderAreRefused) {
  const std::string nowhere = folder_.file("no/snap");
  EXPECT_NE(check_snapshot_place(nowhere).error().text().find("No such file"), std::string::npos);
  EXPECT_FALSE(write_snapshot(nowhere, store_, kNow, go_on));
  EXPECT_TRUE(check_snapshot_place(path()));
  EXPECT_FALSE(exists("snap.new"));
}

}  // namespace
}  // namespace kvferry::app
