// Operations on the store, drawn from the input, against a map that does the same.
//
// The first byte chooses between a store that must keep everything and one that has to evict; the
// others are what random decisions are made of.
#include "tests/unit/store/store_model.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace {

using kvferry::store::kLimitBytesMin;
using kvferry::store::StoreConfig;
using kvferry::store::StoreModel;

/// Bits from the input, zeros behind its end.
class Bits {
 public:
  Bits(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

  std::uint32_t operator()() {
    std::uint32_t word = 0;
    for (int i = 0; i < 2; ++i) {
      word = word << 8 | (at_ < size_ ? data_[at_] : 0);
      ++at_;
    }
    return word;
  }
  bool empty() const { return at_ >= size_; }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
  std::size_t at_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bits bits(data, size);
  const bool evicts = bits() % 2 == 1;
  StoreModel model(
      evicts
          ? StoreConfig{.limit_bytes = kLimitBytesMin, .item_bytes_max = 100'000, .shard_count = 1}
          : StoreConfig{.shard_count = 1});
  while (!bits.empty()) {
    if (!model.step([&] { return bits(); }).empty()) {
      std::abort();
    }
  }
  return 0;
}
