// Operations that decide by a copy of the old item.
#include <string>

#include <gtest/gtest.h>

#include "store/store.h"

namespace kvferry::store {
namespace {

constexpr Instant kNow{1'800'000'000};

class StoreEditTest : public testing::Test {
 protected:
  void put(std::string_view value, Instant exptime = kNever, std::uint32_t flags = 0) {
    ASSERT_EQ(store_.store(key_, {.client_flags = flags, .exptime = exptime}, value, kNow).status,
              StoreStatus::Stored);
  }
  static std::string value_of(ItemCopy& copy) {
    std::string value;
    while (copy.pieces.has_more()) {
      value.append(copy.pieces.take());
    }
    return value.append(copy.rest_view());
  }
  std::string stored() {
    ItemCopy copy;
    store_.copy(key_, kNow, copy);
    return copy.is_found ? value_of(copy) : "none";
  }

  Store store_{StoreConfig{}};
  Key key_{"some key"};
  ItemCopy copy_;
};

const std::string kLarge(100'000, 'l');

TEST_F(StoreEditTest, CopiesWhatThereIs) {
  store_.copy(key_, kNow, copy_);
  EXPECT_FALSE(copy_.is_found);
  for (const std::string& value : {std::string("value"), std::string(), kLarge}) {
    put(value, Instant{kNow.get() + 5}, 7);
    store_.copy(key_, kNow, copy_);
    EXPECT_TRUE(copy_.is_found);
    EXPECT_EQ(copy_.client_flags, 7U);
    EXPECT_EQ(copy_.exptime.get(), kNow.get() + 5);
    EXPECT_EQ(value_of(copy_), value);
  }
  store_.copy(key_, Instant{kNow.get() + 5}, copy_);
  EXPECT_FALSE(copy_.is_found) << "expired";
}

TEST_F(StoreEditTest, ReplacesWhatIsStillTheSame) {
  for (const std::string& old : {std::string("old"), kLarge}) {
    for (const std::string& value : {std::string("new"), kLarge + "x"}) {
      put(old);
      store_.copy(key_, kNow, copy_);
      EXPECT_EQ(store_.replace(key_, copy_, {.client_flags = 3}, value, kNow), EditStatus::Done);
      EXPECT_EQ(stored(), value);
      EXPECT_EQ(store_.replace(key_, copy_, {}, "late", kNow), EditStatus::Changed);
      EXPECT_EQ(store_.remove_copied(key_, copy_, kNow), EditStatus::Changed);
      EXPECT_EQ(store_.set_exptime(key_, copy_, kLongAgo, kNow), EditStatus::Changed);
      EXPECT_EQ(stored(), value);
    }
  }
}

TEST_F(StoreEditTest, MakesItemsWhereThereAreNone) {
  store_.copy(key_, kNow, copy_);
  EXPECT_EQ(store_.replace(key_, copy_, {}, "first", kNow), EditStatus::Done);
  EXPECT_EQ(store_.replace(key_, copy_, {}, "second", kNow), EditStatus::Changed);
  EXPECT_EQ(stored(), "first");
}

TEST_F(StoreEditTest, SeesEveryChange) {
  const auto expect_changed = [&](const std::string& what) {
    EXPECT_EQ(store_.replace(key_, copy_, {}, "x", kNow), EditStatus::Changed) << what;
  };
  put("a");
  store_.copy(key_, kNow, copy_);
  put("b");
  expect_changed("value");
  store_.copy(key_, kNow, copy_);
  put("b", kNever, 1);
  expect_changed("flags");
  store_.copy(key_, kNow, copy_);
  store_.touch(key_, Instant{kNow.get() + 9}, kNow);
  expect_changed("exptime");
  store_.copy(key_, kNow, copy_);
  store_.remove(key_, {}, kNow);
  expect_changed("gone");
  put(kLarge);
  store_.copy(key_, kNow, copy_);
  put(kLarge);
  expect_changed("another chain of pieces");
  store_.copy(key_, kNow, copy_);
  store_.flush(kNever, kNow);
  expect_changed("flushed");
}

TEST_F(StoreEditTest, RemovesAndSetsExptimes) {
  put("a");
  store_.copy(key_, kNow, copy_);
  EXPECT_EQ(store_.set_exptime(key_, copy_, Instant{kNow.get() + 9}, kNow), EditStatus::Done);
  store_.copy(key_, kNow, copy_);
  EXPECT_EQ(copy_.exptime.get(), kNow.get() + 9);
  EXPECT_EQ(store_.set_exptime(key_, copy_, kNever, kNow), EditStatus::Done);
  store_.copy(key_, kNow, copy_);
  EXPECT_EQ(copy_.exptime, kNever);
  EXPECT_EQ(store_.remove_copied(key_, copy_, kNow), EditStatus::Done);
  EXPECT_EQ(stored(), "none");
  EXPECT_EQ(store_.set_exptime(key_, copy_, kNever, kNow), EditStatus::Changed);
}

TEST_F(StoreEditTest, RefusesWhatIsTooLarge) {
  store_.copy(key_, kNow, copy_);
  const std::string too_large(kItemBytesMaxDefault, 'x');
  EXPECT_EQ(store_.replace(key_, copy_, {}, too_large, kNow), EditStatus::TooLarge);
  EXPECT_EQ(stored(), "none");
}

}  // namespace
}  // namespace kvferry::store
