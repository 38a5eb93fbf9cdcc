#include "base/slab_pool.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace kvferry::base {
namespace {

constexpr std::size_t kBigPiece = kSlabBytes / 4;  // Three fit beside the slab's head.
constexpr std::size_t kBigPiecesPerSlab = 3;

std::vector<void*> acquire_many(SlabPool& pool, std::size_t count) {
  std::vector<void*> pieces;
  for (std::size_t i = 0; i < count; ++i) {
    pieces.push_back(pool.acquire());
  }
  return pieces;
}

void release_all(SlabPool& pool, std::vector<void*>& pieces) {
  for (void* piece : pieces) {
    pool.release(piece);
  }
  pieces.clear();
}

TEST(SlabPool, RoundsPiecesUpToSixteenBytes) {
  MemoryBudget budget(0);
  for (const auto& [asked, given] :
       std::map<std::size_t, std::size_t>{{1, 16}, {15, 16}, {16, 16}, {17, 32}, {1024, 1024}}) {
    const SlabPool pool(asked, budget);
    EXPECT_EQ(pool.piece_bytes(), given) << asked;
  }
}

TEST(SlabPool, ChargesWholeSlabsAndReturnsThemAtItsEnd) {
  MemoryBudget budget(0);
  {
    SlabPool pool(100, budget);
    EXPECT_EQ(budget.used_bytes(), 0U) << "no slab before the first piece";
    void* piece = pool.acquire();
    EXPECT_EQ(budget.used_bytes(), kSlabBytes);
    pool.release(piece);
    EXPECT_EQ(budget.used_bytes(), kSlabBytes) << "kept for the next piece";
  }
  EXPECT_EQ(budget.used_bytes(), 0U);
}

TEST(SlabPool, OpensASecondSlabOnlyWhenTheFirstIsFull) {
  MemoryBudget budget(0);
  SlabPool pool(kBigPiece, budget);
  std::vector<void*> pieces = acquire_many(pool, kBigPiecesPerSlab);
  EXPECT_EQ(pool.slab_count(), 1U);
  pieces.push_back(pool.acquire());
  EXPECT_EQ(pool.slab_count(), 2U);
  release_all(pool, pieces);
}

TEST(SlabPool, GivesTheLastReleasedPieceFirst) {
  MemoryBudget budget(0);
  SlabPool pool(64, budget);
  void* first = pool.acquire();
  void* second = pool.acquire();
  pool.release(first);
  EXPECT_EQ(pool.acquire(), first) << "its cache lines are warm";
  pool.release(first);
  pool.release(second);
}

TEST(SlabPool, TrimKeepsWhatTheLastTwoPeriodsNeeded) {
  MemoryBudget budget(0);
  SlabPool pool(kBigPiece, budget);
  std::vector<void*> pieces = acquire_many(pool, 5 * kBigPiecesPerSlab);
  release_all(pool, pieces);
  ASSERT_EQ(pool.slab_count(), 5U);
  pool.trim();
  EXPECT_EQ(pool.slab_count(), 5U) << "in use in the period that ends now";
  pool.trim();
  EXPECT_EQ(pool.slab_count(), 5U) << "in use in the period before";
  pool.trim();
  EXPECT_EQ(pool.slab_count(), 1U) << "one stays warm";
  EXPECT_EQ(budget.used_bytes(), kSlabBytes);
  pool.trim(true);
  EXPECT_EQ(pool.slab_count(), 0U);
  EXPECT_EQ(budget.used_bytes(), 0U);
}

TEST(SlabPool, TrimNeverTakesASlabInUse) {
  MemoryBudget budget(0);
  SlabPool pool(kBigPiece, budget);
  std::vector<void*> pieces = acquire_many(pool, 4 * kBigPiecesPerSlab);
  // One live piece in each slab but the last, which becomes empty.
  std::vector<void*> kept;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (i % kBigPiecesPerSlab == 0 && i < 3 * kBigPiecesPerSlab) {
      kept.push_back(pieces[i]);
    } else {
      pool.release(pieces[i]);
    }
  }
  for (void* piece : kept) {
    std::memset(piece, 0x5a, kBigPiece);
  }
  pool.trim(true);
  EXPECT_EQ(pool.slab_count(), 3U);
  for (void* piece : kept) {
    const auto* bytes = static_cast<const unsigned char*>(piece);
    EXPECT_TRUE(
        std::all_of(bytes, bytes + kBigPiece, [](unsigned char byte) { return byte == 0x5a; }));
  }
  release_all(pool, kept);
}

TEST(SlabPool, FillsSlabsInUseBeforeEmptyOnes) {
  MemoryBudget budget(0);
  SlabPool pool(kBigPiece, budget);
  std::vector<void*> first = acquire_many(pool, kBigPiecesPerSlab);
  std::vector<void*> second = acquire_many(pool, kBigPiecesPerSlab);
  release_all(pool, second);   // The second slab is empty,
  pool.release(first.back());  // the first has one free piece:
  void* expected = first.back();
  first.back() = pool.acquire();  // which is used first,
  EXPECT_EQ(first.back(), expected);
  pool.trim(true);  // so that the other can leave.
  EXPECT_EQ(pool.slab_count(), 1U);
  release_all(pool, first);
}

TEST(SlabPoolDeathTest, RefusesToDieWhileAPieceIsOut) {
  EXPECT_DEATH(
      {
        MemoryBudget budget(0);
        SlabPool pool(64, budget);
        static_cast<void>(pool.acquire());
      },
      "live_pieces_ == 0");
}

/// Random acquires, releases and trims: pieces never overlap, are aligned, keep their bytes, and
/// the charge is always the number of slabs.
TEST(SlabPoolModel, PiecesNeverOverlapUnderRandomSteps) {
  for (std::uint32_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    MemoryBudget budget(0);
    const std::size_t piece_bytes = std::size_t{16} << (seed % 12);
    SlabPool pool(piece_bytes, budget);
    std::map<char*, unsigned char> live;
    const std::size_t live_max = std::min<std::size_t>(4 * kSlabBytes / piece_bytes, 3000);
    bool growing = true;
    for (int step = 0; step < 12'000; ++step) {
      growing = live.empty() || (live.size() < live_max && (growing || random() % 400 == 0));
      if (random() % 1000 == 0) {
        pool.trim(random() % 4 == 0);
      } else if (growing ? random() % 4 != 0 : random() % 4 == 0) {
        auto* piece = static_cast<char*>(pool.acquire());
        ASSERT_EQ(reinterpret_cast<std::uintptr_t>(piece) % 16, 0U);
        const auto after = live.lower_bound(piece);
        ASSERT_TRUE(after == live.end() || after->first >= piece + piece_bytes);
        ASSERT_TRUE(after == live.begin() || std::prev(after)->first + piece_bytes <= piece);
        const auto mark = static_cast<unsigned char>(random());
        std::memset(piece, mark, piece_bytes);
        live.emplace(piece, mark);
      } else if (!live.empty()) {
        auto found = live.lower_bound(live.begin()->first + random() % (2 * kSlabBytes));
        found = found == live.end() ? live.begin() : found;
        const auto* bytes = reinterpret_cast<const unsigned char*>(found->first);
        ASSERT_EQ(bytes[0], found->second);
        ASSERT_EQ(bytes[piece_bytes - 1], found->second);
        pool.release(found->first);
        live.erase(found);
      }
      ASSERT_EQ(pool.live_pieces(), live.size());
      ASSERT_EQ(budget.used_bytes(), pool.slab_count() * kSlabBytes);
    }
    for (const auto& [piece, mark] : live) {
      pool.release(piece);
    }
    pool.trim(true);
    EXPECT_EQ(budget.used_bytes(), 0U);
  }
}

}  // namespace
}  // namespace kvferry::base
