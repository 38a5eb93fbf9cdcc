#include "base/carry_buffer.h"

#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/splitter.h"

namespace kvferry::base {
namespace {

class CarryBufferTest : public testing::Test {
 protected:
  MemoryBudget budget_{0};
  BlockPool pool_{budget_};
  CarryBuffer carry_;
};

/// Takes units whose first two bytes are their size, and checks that each comes whole and in order.
class UnitReader {
 public:
  /// At most `units_max` units a call: a consumer may stop although more has come.
  explicit UnitReader(std::size_t units_max) : units_max_(units_max) {}

  std::size_t operator()(std::string_view view) {
    EXPECT_FALSE(view.empty());
    std::size_t taken = 0;
    for (std::size_t i = 0; i < units_max_ && view.size() - taken >= 2; ++i) {
      const std::size_t size = size_at(view.substr(taken));
      if (view.size() - taken < size) {
        break;
      }
      all += view.substr(taken, size);
      taken += size;
    }
    return taken;
  }
  static std::size_t size_at(std::string_view view) {
    return static_cast<std::size_t>(static_cast<unsigned char>(view[0])) * 256 +
           static_cast<unsigned char>(view[1]);
  }

  std::string all;

 private:
  std::size_t units_max_;
};

std::string unit(std::size_t size, unsigned seed) {
  std::string bytes(size, '\0');
  for (std::size_t i = 2; i < size; ++i) {
    bytes[i] = static_cast<char>(seed + i * 31);
  }
  bytes[0] = static_cast<char>(size / 256);
  bytes[1] = static_cast<char>(size % 256);
  return bytes;
}

TEST_F(CarryBufferTest, IsEmptyWithoutMemoryAtFirst) {
  EXPECT_TRUE(carry_.empty());
  EXPECT_EQ(carry_.size(), 0U);
  EXPECT_EQ(budget_.used_bytes(), 0U);
}

TEST_F(CarryBufferTest, EveryCutGivesTheSameUnits) {
  const std::string whole = unit(2, 1) + unit(9, 2) + unit(40, 3) + unit(3, 4) + unit(17, 5);
  for (const test::Pieces& pieces : test::all_cuts(whole)) {
    UnitReader reader(100);
    for (const std::string_view piece : pieces) {
      carry_.feed(pool_, piece, [&](std::string_view view) { return reader(view); });
    }
    ASSERT_EQ(reader.all, whole);
    ASSERT_TRUE(carry_.empty());
  }
}

TEST_F(CarryBufferTest, AnyCutsAndUnitSizesGiveTheSameUnits) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    // Small units, ones around the peeked size, and ones that need the heap.
    const std::size_t size_max = std::vector<std::size_t>{8, 300, 2100, 5000, 40'000}[random() % 5];
    std::string whole;
    for (int i = 0; i < 20; ++i) {
      whole += unit(2 + random() % size_max, random() % 256);
    }
    const std::size_t piece_max = 1 + random() % (2 * size_max);
    UnitReader reader(100);
    for (std::size_t at = 0; at < whole.size();) {
      const std::size_t size = std::min<std::size_t>(1 + random() % piece_max, whole.size() - at);
      carry_.feed(pool_, std::string_view(whole).substr(at, size),
                  [&](std::string_view view) { return reader(view); });
      at += size;
      ASSERT_EQ(reader.all.size() + carry_.size(), at);
    }
    ASSERT_TRUE(reader.all == whole) << "round " << round;
    ASSERT_TRUE(carry_.empty());
  }
  pool_.trim(true);
  EXPECT_EQ(budget_.used_bytes(), 0U);
}

TEST_F(CarryBufferTest, AConsumerThatStopsEarlyLosesNothing) {
  std::mt19937 random(12);
  for (int round = 0; round < 300; ++round) {
    std::string whole;
    for (int i = 0; i < 30; ++i) {
      whole += unit(2 + random() % 3000, random() % 256);
    }
    UnitReader reader(random() % 3);  // 0: holds everything back.
    for (std::size_t at = 0; at < whole.size();) {
      const std::size_t size = std::min<std::size_t>(1 + random() % 9000, whole.size() - at);
      carry_.feed(pool_, std::string_view(whole).substr(at, size),
                  [&](std::string_view view) { return reader(view); });
      at += size;
      ASSERT_EQ(reader.all.size() + carry_.size(), at);
    }
    UnitReader rest(100);
    carry_.feed(pool_, {}, [&](std::string_view view) { return rest(view); });
    ASSERT_TRUE(reader.all + rest.all == whole) << "round " << round;
    ASSERT_TRUE(carry_.empty());
  }
}

TEST_F(CarryBufferTest, UnitsAreParsedWhereTheyCameWhenNothingIsCarried) {
  const std::string whole = unit(10, 1) + unit(20, 2);
  const char* seen = nullptr;
  carry_.feed(pool_, whole, [&](std::string_view view) {
    seen = view.data();
    return view.size();
  });
  EXPECT_EQ(seen, whole.data());
  EXPECT_EQ(budget_.used_bytes(), 0U);
}

TEST_F(CarryBufferTest, GoesOnInPlaceAfterTheCutUnit) {
  const std::string whole = unit(100, 1) + unit(60'000, 2);
  UnitReader reader(100);
  std::vector<const char*> seen;
  const auto consume = [&](std::string_view view) {
    seen.push_back(view.data());
    return reader(view);
  };
  carry_.feed(pool_, std::string_view(whole).substr(0, 50), consume);
  carry_.feed(pool_, std::string_view(whole).substr(50), consume);
  EXPECT_TRUE(reader.all == whole);
  EXPECT_EQ(seen.back(), whole.data() + 100) << "the large unit was copied";
}

TEST_F(CarryBufferTest, LargeContentsAreChargedAndGivenBack) {
  const std::string big(1'000'000, 'x');
  carry_.append(pool_, big);
  EXPECT_GE(budget_.used_bytes(), big.size());
  EXPECT_EQ(carry_.view(), big);
  carry_.consume(999'999);
  EXPECT_EQ(carry_.view(), "x");
  carry_.consume(1);
  EXPECT_TRUE(carry_.empty());
  EXPECT_LT(budget_.used_bytes(), big.size());
}

TEST_F(CarryBufferTest, MemoryStaysBoundedWhileBytesPassThrough) {
  // A few bytes always stay behind, so that the buffer is never given back.
  carry_.append(pool_, std::string(20'000, 'a'));
  for (int i = 0; i < 2000; ++i) {
    carry_.append(pool_, std::string(10'000, 'b'));
    carry_.consume(10'000);
  }
  EXPECT_EQ(carry_.size(), 20'000U);
  EXPECT_LT(budget_.used_bytes(), 1'000'000U);
}

}  // namespace
}  // namespace kvferry::base
