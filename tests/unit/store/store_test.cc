// The operations of the store, without any wire format.
#include "store/store.h"

#include <string>

#include <gtest/gtest.h>

namespace kvferry::store {
namespace {

TEST(Store, FindsWhatWasStored) {
  Store store(StoreConfig{});
  const Instant now{1'000'000'000};
  EXPECT_EQ(store.store(Key("a"), StoreOptions{}, "1", now).status, StoreStatus::Stored);
  EXPECT_EQ(store.read(Key("a"), ReadOptions{}, now, {}).status, ReadStatus::Hit);
}

}  // namespace
}  // namespace kvferry::store
