// The layout of items: every combination of fields holds what was put in.
#include "store/record.h"

#include <array>
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/store/store_probe.h"

namespace kvferry::store {
namespace {

/// Room for the longest record.
struct Room {
  alignas(8) std::array<char, kRecordBytesMax> bytes{};
  Record& record() { return *reinterpret_cast<Record*>(bytes.data()); }
};

RecordShape shape_of(unsigned fields, std::size_t key_bytes, std::size_t value_bytes) {
  return {key_bytes, value_bytes, (fields & 1) != 0, (fields & 2) != 0, (fields & 4) != 0};
}

TEST(Record, HoldsWhatItIsGivenInEveryShape) {
  for (unsigned fields = 0; fields < 8; ++fields) {
    for (const std::size_t key_bytes : {std::size_t{1}, std::size_t{7}, kKeyBytesMax}) {
      for (const std::size_t value_bytes :
           {std::size_t{0}, std::size_t{1}, kInlineBytesMax, kInlineBytesMax + 1}) {
        Room room;
        Record& record = room.record();
        const RecordShape shape = shape_of(fields, key_bytes, value_bytes);
        record.begin(shape);
        const std::uint64_t cas = shape.has_wide_cas ? ~std::uint64_t{0} : kWideCasMin - 1;
        const std::string key(key_bytes, 'k');
        record.set_cas(cas);
        record.set_used_at(kNow);
        if (shape.has_flags) {
          record.set_client_flags(0xfedcba98);
        }
        if (shape.has_exptime) {
          record.set_exptime(later(9));
        }
        record.set_key(key);
        record.set(kStale);
        std::string value(Record::inline_bytes_of(value_bytes), 'v');
        value.copy(record.inline_value_begin(), value.size());

        EXPECT_EQ(record.cas(), cas);
        EXPECT_EQ(record.idle_seconds(later(5)), 5U);
        EXPECT_EQ(record.client_flags(), shape.has_flags ? 0xfedcba98 : 0);
        EXPECT_EQ(record.exptime(), shape.has_exptime ? later(9) : kNever);
        EXPECT_EQ(record.key(), key);
        EXPECT_EQ(record.inline_value(), value);
        EXPECT_EQ(record.value_bytes(), value_bytes);
        EXPECT_EQ(record.item_marks(), kStale);
        EXPECT_EQ(record.total_bytes(), Record::total_bytes_of(shape));
        EXPECT_EQ(record.total_bytes() % kRecordAlignBytes, 0U);
      }
    }
  }
}

TEST(Record, TakesOverAnotherWhateverFieldsItHasMore) {
  for (unsigned from = 0; from < 8; ++from) {
    for (unsigned to = 0; to < 8; ++to) {
      if ((from & to) != from) {
        continue;
      }
      Room old_room;
      Record& old = old_room.record();
      old.begin(shape_of(from, 3, 5));
      old.set_cas(1234567);
      old.set_used_at(kNow);
      if ((from & 1) != 0) {
        old.set_client_flags(11);
      }
      if ((from & 2) != 0) {
        old.set_exptime(later(3));
      }
      old.set_key("key");
      std::string_view("value").copy(old.inline_value_begin(), 5);
      old.set(kFetched);

      Room room;
      Record& record = room.record();
      record.begin(shape_of(to, 3, 5));
      record.copy_from(old);
      EXPECT_EQ(record.cas(), 1234567U);
      EXPECT_EQ(record.idle_seconds(later(1)), 1U);
      EXPECT_EQ(record.client_flags(), old.client_flags());
      EXPECT_EQ(record.exptime(), old.exptime());
      EXPECT_EQ(record.key(), "key");
      EXPECT_EQ(record.inline_value(), "value");
      EXPECT_TRUE(record.has(kFetched));
    }
  }
}

TEST(Record, TellsHowLongItWasIdle) {
  Room room;
  Record& record = room.record();
  record.begin(shape_of(0, 1, 1));
  record.set_used_at(kNow);
  constexpr std::uint32_t kAlmostWrapped = (1U << 24) - 1 - 86'400;
  EXPECT_EQ(record.idle_seconds(kNow), 0U);
  EXPECT_EQ(record.idle_seconds(later(kAlmostWrapped)), kAlmostWrapped);
  EXPECT_EQ(record.idle_seconds(later(kAlmostWrapped + 1)), 0U);
  // The clock was set back.
  EXPECT_EQ(record.idle_seconds(Instant{kNow.get() - 86'400}), 0U);
}

TEST(Record, KnowsWhichCasFits) {
  Room room;
  Record& record = room.record();
  record.begin(shape_of(0, 1, 1));
  EXPECT_TRUE(record.fits_cas(kWideCasMin - 1));
  EXPECT_FALSE(record.fits_cas(kWideCasMin));
  record.begin(shape_of(4, 1, 1));
  EXPECT_TRUE(record.fits_cas(~std::uint64_t{0}));
}

}  // namespace
}  // namespace kvferry::store
