#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace kvferry::base {

void check_failed(const char* condition, const char* file, int line) noexcept {
  static_cast<void>(
      std::fprintf(stderr, "kvferry: bug: %s does not hold at %s:%d\n", condition, file, line));
  std::abort();
}

}  // namespace kvferry::base
