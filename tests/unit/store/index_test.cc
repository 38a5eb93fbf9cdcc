// The index against a map, through growth, splits, chains without another frame, and removal.
#include "store/index.h"

#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include <gtest/gtest.h>

#include "store/segment.h"
#include "tests/unit/store/store_probe.h"

namespace kvferry::store {
namespace {

/// Frames, records with keys, and an index of them.
class IndexTest : public testing::Test {
 protected:
  void* acquire_frame() {
    frames_.emplace_back(std::aligned_alloc(kFrameBytes, kFrameBytes), &std::free);
    return frames_.back().get();
  }

  Record& add_record(const std::string& key) {
    const RecordShape shape{key.size(), 0, false, false, false};
    if (segment_ == nullptr || segment_->room_bytes() < Record::total_bytes_of(shape)) {
      segment_ = std::construct_at(static_cast<Segment*>(acquire_frame()), QueueName::Small,
                                   std::uint16_t{1});
      segments_.add(*segment_);
    }
    Record& record = *segment_->record_at(segment_->end_bytes);
    record.begin(shape);
    record.set_key(key);
    segment_->end_bytes += static_cast<std::uint32_t>(record.total_bytes());
    return record;
  }

  void insert(const std::string& key, bool may_grow = true) {
    while (may_grow && index_.wants_frame()) {
      index_.add_frame(acquire_frame());
    }
    Record& record = add_record(key);
    index_.insert(Key(key), record);
    map_[key] = &record;
  }

  void check_all() {
    ASSERT_EQ(index_.size(), map_.size());
    for (const auto& [key, record] : map_) {
      const Slot slot = index_.find(Key(key));
      ASSERT_TRUE(slot) << key;
      EXPECT_EQ(&slot.record(), record);
      EXPECT_EQ(&index_.find_record(Key(key), *record).record(), record);
    }
  }

  std::vector<std::unique_ptr<void, decltype(&std::free)>> frames_;
  Segment* segment_ = nullptr;
  SegmentTable segments_;
  Index index_{segments_};
  std::unordered_map<std::string, Record*> map_;
};

TEST_F(IndexTest, FindsWhatWasInsertedAndNothingElse) {
  EXPECT_FALSE(index_.find(Key("nothing")));
  EXPECT_FALSE(index_.can_insert());
  for (std::size_t i = 0; i < 30'000; ++i) {
    insert(numbered("key", i));
  }
  check_all();
  for (std::size_t i = 0; i < 1000; ++i) {
    EXPECT_FALSE(index_.find(Key(numbered("other", i))));
  }
}

TEST_F(IndexTest, SpendsAboutNineBytesAnItem) {
  for (std::size_t i = 0; i < 100'000; ++i) {
    insert(numbered("key", i));
  }
  // A frame of buckets proper and one of overflow buckets may be nearly empty.
  EXPECT_LT((index_.frame_count() - 2) * kFrameBytes, 100'000U * 95 / 10);
}

TEST_F(IndexTest, AgreesWithAMapThroughInsertionsAndRemovals) {
  std::minstd_rand random(7);
  for (int i = 0; i < 60'000; ++i) {
    const std::string key = numbered("key", random() % 8000);
    const auto found = map_.find(key);
    if (found == map_.end()) {
      insert(key);
    } else {
      index_.erase(Key(key), index_.find(Key(key)));
      map_.erase(found);
    }
  }
  check_all();
  while (!map_.empty()) {
    const std::string key = map_.begin()->first;
    index_.erase(Key(key), index_.find(Key(key)));
    map_.erase(key);
  }
  EXPECT_EQ(index_.size(), 0U);
}

TEST_F(IndexTest, GoesOnWithLongerChainsUntilTheLastSpareBucket) {
  insert("first");
  std::size_t count = 0;
  while (index_.can_insert()) {
    insert(numbered("key", count++), false);
  }
  check_all();
  // Two frames: 1,024 buckets proper and as many overflow buckets.
  EXPECT_GT(count, 10'000U);
}

TEST_F(IndexTest, KeepsUsesThroughSplitsAndMoves) {
  for (std::size_t i = 0; i < 100; ++i) {
    insert(numbered("key", i));
    Slot slot = index_.find(Key(numbered("key", i)));
    for (std::size_t use = 0; use < i % 6; ++use) {
      slot.add_use();
    }
  }
  for (std::size_t i = 0; i < 20'000; ++i) {
    insert(numbered("more", i));
  }
  for (std::size_t i = 0; i < 100; ++i) {
    Slot slot = index_.find(Key(numbered("key", i)));
    EXPECT_EQ(slot.uses(), std::min<std::size_t>(i % 6, kUsesMax)) << i;
    index_.set_record(slot, add_record(numbered("key", i)));
    EXPECT_EQ(index_.find(Key(numbered("key", i))).uses(), std::min<std::size_t>(i % 6, kUsesMax));
  }
}

TEST_F(IndexTest, VisitsEachItemInExactlyOneBucket) {
  for (std::size_t i = 0; i < 5000; ++i) {
    insert(numbered("key", i));
  }
  std::unordered_map<std::string, int> seen;
  for (std::size_t number = 0; number < index_.bucket_count(); ++number) {
    index_.for_each_in(number, [&](const Record& record) { ++seen[std::string(record.key())]; });
  }
  EXPECT_EQ(seen.size(), map_.size());
  for (const auto& [key, times] : seen) {
    EXPECT_EQ(times, 1) << key;
  }
}

}  // namespace
}  // namespace kvferry::store
