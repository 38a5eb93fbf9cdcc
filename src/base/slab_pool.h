// SlabPool: pieces of one size, cut from aligned slabs that go back to the system when they are
// empty.
//
// Per-request objects and buffer blocks come from here, so the steady state allocates nothing and a
// burst of load does not leave its peak behind: trim(), called about once a second, returns what
// the last seconds did not need.
//
//   slab (kSlabBytes, aligned to its size)
//   +--------+-------+-------+-----+-------+
//   | header | piece | piece | ... | piece |     header: free list, live count, links
//   +--------+-------+-------+-----+-------+
//
// Threads: one. The budget alone is shared.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/intrusive_list.h"
#include "base/memory_budget.h"

#if defined(__SANITIZE_ADDRESS__)
#define KVF_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KVF_ASAN 1
#endif
#endif
#if defined(KVF_ASAN)
#include <sanitizer/asan_interface.h>
#endif

namespace kvferry::base {

inline constexpr std::size_t kSlabBytes = std::size_t{256} * 1024;

class SlabPool {
 public:
  /// Pieces of `piece_bytes` (rounded up to 16), charged to `budget`, which must outlive the pool.
  SlabPool(std::size_t piece_bytes, MemoryBudget& budget);
  SlabPool(const SlabPool&) = delete;
  SlabPool& operator=(const SlabPool&) = delete;
  /// Every piece must have been released.
  ~SlabPool();

  /// Never null: a process that the system refuses a slab ends with a message; budgets exist so
  /// that this is not reached.
  void* acquire() noexcept {
    Slab* slab = partial_.front();
    if (slab == nullptr) [[unlikely]] {
      slab = add_slab();
    }
    Piece* piece = slab->free;
    if (piece != nullptr) {
      unpoison(piece);
      slab->free = piece->next;
    } else {
      piece = carve(*slab);
    }
    ++live_pieces_;
    if (++slab->live == pieces_per_slab_) [[unlikely]] {
      on_full(*slab);
    } else if (slab->live == 1) [[unlikely]] {
      on_used_again();
    }
    return piece;
  }

  void release(void* memory) noexcept {
    Slab* slab = slab_of(memory);
    auto* piece = static_cast<Piece*>(memory);
    piece->next = slab->free;
    slab->free = piece;
    poison(piece);
    --live_pieces_;
    if (slab->live-- == pieces_per_slab_) [[unlikely]] {
      on_no_longer_full(*slab);
    }
    if (slab->live == 0) [[unlikely]] {
      on_empty(*slab);
    }
  }

  /// Returns to the system the empty slabs beyond what was in use since the call before the last;
  /// with `all_empty`, every empty slab.
  void trim(bool all_empty = false) noexcept;

  std::size_t piece_bytes() const noexcept { return piece_bytes_; }
  std::size_t live_pieces() const noexcept { return live_pieces_; }
  std::size_t slab_count() const noexcept { return slab_count_; }

 private:
  struct Piece {
    Piece* next;
  };
  struct SlabTag;
  struct Slab : ListHook<SlabTag> {
    Piece* free = nullptr;
    std::uint32_t live = 0;
    std::uint32_t carved = 0;  // Pieces handed out so far; the rest of the slab was never touched.
  };

  static Slab* slab_of(void* memory) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(memory) & ~(kSlabBytes - 1);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): slabs are aligned to their size.
    return reinterpret_cast<Slab*>(address);
  }
  // Under AddressSanitizer a released piece may not be touched, as freed memory may not.
#if defined(KVF_ASAN)
  void poison(Piece* piece) const noexcept { ASAN_POISON_MEMORY_REGION(piece, piece_bytes_); }
  void unpoison(Piece* piece) const noexcept { ASAN_UNPOISON_MEMORY_REGION(piece, piece_bytes_); }
#else
  void poison(Piece* /*piece*/) const noexcept {}
  void unpoison(Piece* /*piece*/) const noexcept {}
#endif
  Piece* carve(Slab& slab) const noexcept;
  Slab* add_slab() noexcept;
  void remove_slab(Slab& slab) noexcept;
  void on_full(Slab& slab) noexcept;
  void on_no_longer_full(Slab& slab) noexcept;
  void on_empty(Slab& slab) noexcept;
  void on_used_again() noexcept;

  List<Slab, SlabTag> partial_;  // Have free pieces: those in use in front, empty ones behind.
  List<Slab, SlabTag> full_;
  MemoryBudget& budget_;
  std::size_t piece_bytes_;
  std::size_t pieces_per_slab_;
  std::size_t live_pieces_ = 0;
  std::size_t slab_count_ = 0;
  std::size_t empty_slabs_ = 0;
  std::size_t busy_peak_ = 0;       // Most slabs in use since the last trim.
  std::size_t busy_peak_last_ = 0;  // The same for the period before.
};

}  // namespace kvferry::base
