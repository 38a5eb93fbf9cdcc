// CarryBuffer: the bytes of a unit (request, reply) that has not come whole yet, kept contiguous
// until it has.
//
// Most receives need none: units are parsed where they were received, and only the cut one at the
// end is carried over. The next receive copies just enough to finish that one and goes on in place.
// An empty buffer holds no memory. Threads: one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "base/byte_chain.h"

namespace kvferry::base {

class CarryBuffer {
 public:
  CarryBuffer() = default;
  CarryBuffer(const CarryBuffer&) = delete;
  CarryBuffer& operator=(const CarryBuffer&) = delete;
  ~CarryBuffer() { clear(); }

  bool empty() const noexcept { return begin_ == end_; }
  std::size_t size() const noexcept { return end_ - begin_; }
  std::string_view view() const noexcept { return {memory_ + begin_, size()}; }

  /// Copies `bytes` to the end. Small contents live in a block of `pool`, larger ones on the heap,
  /// charged to its budget.
  void append(BlockPool& pool, std::string_view bytes) noexcept;
  /// Drops `bytes` (at most size()) from the front; gives the memory back when nothing is left.
  void consume(std::size_t bytes) noexcept {
    begin_ += bytes;
    if (begin_ == end_) {
      clear();
    }
  }
  void clear() noexcept;

  /// Runs `consume(view) -> taken` over what was carried and the new `bytes` in order, then carries
  /// what is left. `consume` takes as many whole units as it likes from the front, returns their
  /// size, and 0 when it needs more.
  template <typename Consume>
  void feed(BlockPool& pool, std::string_view bytes, Consume consume_units) {
    if (!empty()) {
      const std::size_t carried = size();
      const std::size_t peek = std::min(bytes.size(), kPeekBytes);
      append(pool, bytes.substr(0, peek));
      bytes.remove_prefix(peek);
      std::size_t taken = consume_units(view());
      if (taken < carried && !bytes.empty()) {
        append(pool, bytes);
        bytes = {};
        consume(taken);
        taken = empty() ? 0 : consume_units(view());
        consume(taken);
        return;
      }
      if (taken < carried || bytes.empty()) {
        consume(taken);
        return;
      }
      // The carried unit is done. What was copied beyond it still lies in front of the rest of
      // `bytes`: go on in place.
      bytes = std::string_view(bytes.data() - (carried + peek - taken),
                               bytes.size() + (carried + peek - taken));
      clear();
    }
    const std::size_t taken = bytes.empty() ? 0 : consume_units(bytes);
    if (taken < bytes.size()) {
      append(pool, bytes.substr(taken));
    }
  }

 private:
  /// Copied ahead to finish a carried unit; most units are shorter.
  static constexpr std::size_t kPeekBytes = 2048;

  void grow(BlockPool& pool, std::size_t bytes) noexcept;

  char* memory_ = nullptr;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t capacity_ = 0;
  BlockPool* heap_pool_ =
      nullptr;  // Set while the memory comes from the heap: whose budget it is charged to.
};

}  // namespace kvferry::base
