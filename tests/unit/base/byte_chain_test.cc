#include "base/byte_chain.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

namespace kvferry::base {
namespace {

constexpr std::size_t kSmallRoom = kBlockBytesSmall - sizeof(Block);
constexpr std::size_t kLargeRoom = kBlockBytesLarge - sizeof(Block);

/// Bytes that differ from their neighbours, so that a shifted or lost run shows.
std::string make_bytes(std::size_t size, std::size_t seed = 0) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<char>((i * 131 + seed * 17 + (i >> 8)) & 0xff);
  }
  return bytes;
}

std::string contents(const ByteChain& chain) {
  std::array<iovec, 512> parts{};
  const std::size_t count = chain.gather(parts.data(), parts.size());
  std::string all;
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_NE(parts[i].iov_len, 0U) << "gather lists carry no empty run";
    all.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
  }
  return all;
}

class ByteChainTest : public ::testing::Test {
 protected:
  MemoryBudget budget_{0};
  BlockPool pool_{budget_};
};

TEST_F(ByteChainTest, HoldsNoBlockWhileEmpty) {
  ByteChain chain;
  EXPECT_TRUE(chain.empty());
  EXPECT_EQ(pool_.live_bytes(), 0U);
  chain.append(pool_, "abc");
  EXPECT_EQ(pool_.live_bytes(), kBlockBytesSmall);
  chain.consume(3);
  EXPECT_TRUE(chain.empty());
  EXPECT_EQ(chain.front(), "");
  EXPECT_EQ(pool_.live_bytes(), 0U);
}

TEST_F(ByteChainTest, TakesASmallBlockUpToItsRoomAndALargeOneBeyond) {
  struct Row {
    std::size_t size;
    std::size_t held;
  };
  for (const Row row :
       {Row{1, kBlockBytesSmall}, Row{kSmallRoom - 1, kBlockBytesSmall},
        Row{kSmallRoom, kBlockBytesSmall}, Row{kSmallRoom + 1, kBlockBytesLarge},
        Row{kLargeRoom, kBlockBytesLarge}, Row{kLargeRoom + 1, 2 * kBlockBytesLarge}}) {
    ByteChain chain;
    const std::string bytes = make_bytes(row.size);
    chain.append(pool_, bytes);
    EXPECT_EQ(pool_.live_bytes(), row.held) << row.size;
    EXPECT_EQ(contents(chain), bytes) << row.size;
  }
  EXPECT_EQ(pool_.live_bytes(), 0U);
}

TEST_F(ByteChainTest, ContinuesASmallBlockInALargeOne) {
  ByteChain chain;
  const std::string first = make_bytes(kSmallRoom - 3, 1);
  const std::string second = make_bytes(10, 2);
  chain.append(pool_, first);
  chain.append(pool_, second);
  EXPECT_EQ(pool_.live_bytes(), kBlockBytesSmall + kBlockBytesLarge);
  EXPECT_EQ(contents(chain), first + second);
}

TEST_F(ByteChainTest, AppendOutputStartsWithALargeBlock) {
  ByteChain chain;
  chain.append_output(pool_, "x");
  EXPECT_EQ(pool_.live_bytes(), kBlockBytesLarge);
  EXPECT_EQ(contents(chain), "x");
}

TEST_F(ByteChainTest, AppendingNothingChangesNothing) {
  ByteChain chain;
  chain.append(pool_, std::string_view{});
  EXPECT_EQ(pool_.live_bytes(), 0U);
  chain.append(pool_, "a");
  chain.append(pool_, std::string_view{});
  EXPECT_EQ(contents(chain), "a");
}

TEST_F(ByteChainTest, PrepareGivesContiguousSpaceAndCommitTakesPartOfIt) {
  ByteChain chain;
  chain.append(pool_, make_bytes(kSmallRoom - 4));
  const std::string bytes = make_bytes(100, 3);
  char* space = chain.prepare(pool_, bytes.size());
  std::copy(bytes.begin(), bytes.end(), space);
  chain.commit(60);
  EXPECT_EQ(contents(chain), make_bytes(kSmallRoom - 4) + bytes.substr(0, 60));
  // What fits goes behind the bytes that are there.
  char* more = chain.prepare(pool_, 1);
  EXPECT_EQ(more, space + 60);
  chain.commit(0);
  ASSERT_NE(chain.prepare(pool_, kLargeRoom), nullptr);
  chain.commit(0);
  chain.append(pool_, "tail");
  chain.consume(kSmallRoom - 4 + 60);
  EXPECT_EQ(chain.front(), "tail");
}

TEST_F(ByteChainTest, SpaceThatWasNotCommittedNeverStandsInFrontOfBytes) {
  ByteChain source;
  const std::string bytes = make_bytes(5000);
  source.append(pool_, bytes);

  ByteChain chain;
  ASSERT_NE(chain.prepare(pool_, 64), nullptr);
  chain.commit(0);
  chain.splice(pool_, source);
  EXPECT_EQ(chain.front().size(), bytes.size());

  // The same behind bytes: the empty block is met when the bytes before it are gone.
  ByteChain other;
  other.append(pool_, make_bytes(kSmallRoom));
  ASSERT_NE(other.prepare(pool_, 64), nullptr);
  other.commit(0);
  other.splice(pool_, chain);
  other.consume(kSmallRoom);
  EXPECT_EQ(other.front(), bytes);
  ByteChain last;
  last.splice(pool_, other, 10);
  EXPECT_EQ(contents(last), bytes.substr(0, 10));
  EXPECT_EQ(contents(other), bytes.substr(10));
}

TEST_F(ByteChainTest, SpliceCopiesShortContentsAndMovesTheBlocksOfLongOnes) {
  ByteChain chain;
  chain.append_output(pool_, "head ");
  ByteChain small;
  small.append(pool_, "short");
  chain.splice(pool_, small);
  EXPECT_TRUE(small.empty());
  EXPECT_EQ(pool_.live_bytes(), kBlockBytesLarge) << "the small block went back";

  ByteChain big;
  const std::string bytes = make_bytes(6000);
  big.append(pool_, bytes);
  const char* place = big.front().data();
  chain.splice(pool_, big);
  EXPECT_TRUE(big.empty());
  EXPECT_EQ(contents(chain), "head short" + bytes);
  chain.consume(10);
  EXPECT_EQ(chain.front().data(), place) << "the block changed hands";
}

TEST_F(ByteChainTest, SpliceOfNothingIsNothing) {
  ByteChain chain;
  ByteChain other;
  chain.splice(pool_, other);
  chain.splice(pool_, other, 0);
  EXPECT_TRUE(chain.empty());
  EXPECT_EQ(pool_.live_bytes(), 0U);
}

TEST_F(ByteChainTest, GatherStopsAtItsLimit) {
  ByteChain chain;
  chain.append(pool_, make_bytes(5 * kLargeRoom));
  std::array<iovec, 3> parts{};
  EXPECT_EQ(chain.gather(parts.data(), parts.size()), 3U);
  EXPECT_EQ(chain.gather(parts.data(), 0), 0U);
}

TEST_F(ByteChainTest, ConsumesAtEveryCutOfTwoBlocks) {
  const std::string bytes = make_bytes(kSmallRoom + 40);
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    ByteChain chain;
    chain.append(pool_, std::string_view(bytes).substr(0, kSmallRoom));
    chain.append(pool_, std::string_view(bytes).substr(kSmallRoom));
    chain.consume(cut);
    ASSERT_EQ(chain.size(), bytes.size() - cut);
    ASSERT_EQ(contents(chain), bytes.substr(cut)) << cut;
    ASSERT_EQ(chain.front().empty(), cut == bytes.size()) << cut;
  }
  EXPECT_EQ(pool_.live_bytes(), 0U);
}

TEST_F(ByteChainTest, MovingLeavesTheSourceEmptyAndFreesTheTarget) {
  ByteChain from;
  from.append(pool_, "from");
  ByteChain to;
  to.append(pool_, make_bytes(9000));
  to = std::move(from);
  EXPECT_EQ(contents(to), "from");
  EXPECT_EQ(pool_.live_bytes(), kBlockBytesSmall);
  ByteChain last(std::move(to));
  EXPECT_EQ(contents(last), "from");
  // NOLINTNEXTLINE(bugprone-use-after-move): the state after a move is what this tests.
  EXPECT_TRUE(to.empty() && from.empty());
}

/// Two chains and two strings go through the same random steps and must stay equal.
class ByteChainModel {
 public:
  explicit ByteChainModel(std::uint32_t seed) : random_(seed) {}

  void step() {
    const std::size_t at = pick(2);
    ByteChain& chain = chains_[at];
    std::string& model = models_[at];
    switch (pick(9)) {
      case 0:
      case 1:
        append(chain, model, pick(200));
        break;
      case 2:
        append(chain, model, pick(3 * kBlockBytesLarge));
        break;
      case 3: {
        const std::string bytes = make_bytes(pick(kLargeRoom + 1), pick(99));
        char* space = chain.prepare(pool_, bytes.size());
        const std::size_t used = pick(bytes.size() + 1);
        std::copy_n(bytes.begin(), used, space);
        chain.commit(used);
        model += bytes.substr(0, used);
        break;
      }
      case 4:
        chain.splice(pool_, chains_[1 - at]);
        model += std::exchange(models_[1 - at], {});
        break;
      case 5: {
        const std::size_t part = pick(models_[1 - at].size() + 1);
        chain.splice(pool_, chains_[1 - at], part);
        model += models_[1 - at].substr(0, part);
        models_[1 - at].erase(0, part);
        break;
      }
      case 6: {
        const std::string bytes = make_bytes(pick(100), pick(99));
        chain.append_output(pool_, bytes);
        model += bytes;
        break;
      }
      default: {
        const std::size_t part = pick(model.size() + 1);
        chain.consume(part);
        model.erase(0, part);
      }
    }
    // Keeps the strings short enough for one gather list.
    if (model.size() > 20 * kBlockBytesLarge) {
      chain.clear();
      model.clear();
    }
  }

  void verify() {
    for (std::size_t at = 0; at < 2; ++at) {
      ASSERT_EQ(chains_[at].size(), models_[at].size());
      ASSERT_TRUE(contents(chains_[at]) == models_[at]) << "contents differ";
      ASSERT_EQ(chains_[at].front().empty(), models_[at].empty());
    }
  }

  std::size_t live_bytes_after_clear() {
    chains_[0].clear();
    chains_[1].clear();
    return pool_.live_bytes();
  }

 private:
  std::size_t pick(std::size_t bound) {
    return bound == 0 ? 0 : std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_);
  }
  void append(ByteChain& chain, std::string& model, std::size_t size) {
    const std::string bytes = make_bytes(size, pick(99));
    chain.append(pool_, bytes);
    model += bytes;
  }

  MemoryBudget budget_{0};
  BlockPool pool_{budget_};
  std::array<ByteChain, 2> chains_;
  std::array<std::string, 2> models_;
  std::mt19937 random_;
};

TEST(ByteChainModelTest, EqualsAStringUnderRandomSteps) {
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    ByteChainModel model(seed);
    for (int step = 0; step < 300; ++step) {
      model.step();
      model.verify();
      if (HasFatalFailure()) {
        return;
      }
    }
    EXPECT_EQ(model.live_bytes_after_clear(), 0U);
  }
}

}  // namespace
}  // namespace kvferry::base
