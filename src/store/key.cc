#include "store/key.h"

// NOLINTNEXTLINE(readability-identifier-naming): the name is the library's
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace kvferry::store {

std::uint64_t hash_of(std::string_view key) noexcept {
  return XXH3_64bits(key.data(), key.size());
}

}  // namespace kvferry::store
