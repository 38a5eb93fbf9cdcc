#include "base/slab_pool.h"

#include <algorithm>
#include <new>
#include <sys/mman.h>

#include "base/check.h"

namespace kvferry::base {
namespace {

constexpr std::size_t kPieceAlign = 16;

constexpr std::size_t round_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

/// Maps kSlabBytes aligned to their size, by mapping twice as much and giving the ends back.
void* map_slab() noexcept {
  void* raw =
      mmap(nullptr, 2 * kSlabBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  KVF_CHECK(raw != MAP_FAILED);
  auto* base = static_cast<char*>(raw);
  const auto address = reinterpret_cast<std::uintptr_t>(raw);
  const std::size_t head = round_up(address, kSlabBytes) - address;
  if (head != 0) {
    munmap(base, head);
  }
  const std::size_t tail = kSlabBytes - head;
  if (tail != 0) {
    munmap(base + head + kSlabBytes, tail);
  }
  return base + head;
}

}  // namespace

SlabPool::SlabPool(std::size_t piece_bytes, MemoryBudget& budget)
    : budget_(budget),
      piece_bytes_(round_up(std::max(piece_bytes, sizeof(Piece)), kPieceAlign)),
      pieces_per_slab_((kSlabBytes - round_up(sizeof(Slab), kPieceAlign)) / piece_bytes_) {
  KVF_CHECK(pieces_per_slab_ >= 2);
}

SlabPool::~SlabPool() {
  KVF_CHECK(live_pieces_ == 0);
  while (Slab* slab = partial_.front()) {
    remove_slab(*slab);
  }
}

SlabPool::Piece* SlabPool::carve(Slab& slab) const noexcept {
  auto* first = reinterpret_cast<char*>(&slab) + round_up(sizeof(Slab), kPieceAlign);
  return reinterpret_cast<Piece*>(first + slab.carved++ * piece_bytes_);
}

SlabPool::Slab* SlabPool::add_slab() noexcept {
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): remove_slab() unmaps what this made.
  auto* slab = new (map_slab()) Slab;
  budget_.charge(kSlabBytes);
  ++slab_count_;
  ++empty_slabs_;
  partial_.push_front(*slab);
  return slab;
}

void SlabPool::remove_slab(Slab& slab) noexcept {
  slab.unlink();
#if defined(KVF_ASAN)
  ASAN_UNPOISON_MEMORY_REGION(&slab, kSlabBytes);  // The addresses will be mapped again.
#endif
  slab.~Slab();
  munmap(&slab, kSlabBytes);
  budget_.release(kSlabBytes);
  --slab_count_;
  --empty_slabs_;
}

void SlabPool::on_full(Slab& slab) noexcept {
  if (slab.live == 1) {
    on_used_again();
  }
  slab.unlink();
  full_.push_back(slab);
}

void SlabPool::on_no_longer_full(Slab& slab) noexcept {
  slab.unlink();
  partial_.push_front(slab);
}

void SlabPool::on_empty(Slab& slab) noexcept {
  ++empty_slabs_;
  // Empty slabs wait at the back, so that those in use fill up first and the rest can leave.
  slab.unlink();
  partial_.push_back(slab);
}

void SlabPool::on_used_again() noexcept {
  --empty_slabs_;
  busy_peak_ = std::max(busy_peak_, slab_count_ - empty_slabs_);
}

void SlabPool::trim(bool all_empty) noexcept {
  const std::size_t keep = all_empty ? 0 : std::max({busy_peak_, busy_peak_last_, std::size_t{1}});
  while (empty_slabs_ > 0 && slab_count_ > keep) {
    remove_slab(*partial_.back());
  }
  busy_peak_last_ = busy_peak_;
  busy_peak_ = slab_count_ - empty_slabs_;
}

}  // namespace kvferry::base
