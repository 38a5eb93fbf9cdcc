// Assertions for our own mistakes. What a peer, a disk or a user can cause is an error value, never
// a check.
//
// KVF_CHECK is always on; KVF_DCHECK costs more than a compare and is on in debug builds only.
#pragma once

namespace kvferry::base {

/// Writes where and what failed to standard error, then aborts.
[[noreturn]] void check_failed(const char* condition, const char* file, int line) noexcept;

}  // namespace kvferry::base

#define KVF_CHECK(condition)                                         \
  do {                                                               \
    if (!(condition)) [[unlikely]] {                                 \
      ::kvferry::base::check_failed(#condition, __FILE__, __LINE__); \
    }                                                                \
  } while (false)

#ifdef NDEBUG
#define KVF_DCHECK(condition) static_cast<void>(sizeof(!(condition)))
#else
#define KVF_DCHECK(condition) KVF_CHECK(condition)
#endif
