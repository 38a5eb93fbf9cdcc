// The lock of a shard, with the annotations that let clang prove who holds it.
#pragma once

#include <mutex>

#if defined(__clang__)
#define KVF_STORE_ATTRIBUTE(x) __attribute__((x))
#else
#define KVF_STORE_ATTRIBUTE(x)
#endif
#define KVF_CAPABILITY(name) KVF_STORE_ATTRIBUTE(capability(name))
#define KVF_SCOPED_CAPABILITY KVF_STORE_ATTRIBUTE(scoped_lockable)
#define KVF_GUARDED_BY(lock) KVF_STORE_ATTRIBUTE(guarded_by(lock))
#define KVF_REQUIRES(lock) KVF_STORE_ATTRIBUTE(requires_capability(lock))
#define KVF_ACQUIRE(...) KVF_STORE_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define KVF_RELEASE(...) KVF_STORE_ATTRIBUTE(release_capability(__VA_ARGS__))

namespace kvferry::store {

class KVF_CAPABILITY("mutex") ShardLock {
 public:
  void lock() KVF_ACQUIRE() { mutex_.lock(); }
  void unlock() KVF_RELEASE() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

class KVF_SCOPED_CAPABILITY ShardGuard {
 public:
  explicit ShardGuard(ShardLock& lock) KVF_ACQUIRE(lock) : lock_(lock) { lock_.lock(); }
  ShardGuard(const ShardGuard&) = delete;
  ShardGuard& operator=(const ShardGuard&) = delete;
  ~ShardGuard() KVF_RELEASE() { lock_.unlock(); }

 private:
  ShardLock& lock_;
};

}  // namespace kvferry::store
