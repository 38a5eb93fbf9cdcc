// Replies and values of the embedded store that take more than one step.
//
// Delivery: the reply to a retrieval that has a large value in it, or was paused.
//
//   Value --last piece, rest--> Keys --next key is large--> Value
//                                |  \--no key left---------> done
//
// Upload: a value that comes in parts. Both live in pools of their StoreTarget until the call is
// answered.
// Threads: the worker of the target.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "call/call.h"
#include "protocol/memcache/meta_flags.h"
#include "protocol/memcache/request.h"
#include "protocol/memcache/token_walker.h"
#include "store/store.h"

namespace kvferry::route {

class StoreTarget;

/// A retrieval (or an mg) on its way.
struct Retrieval {
  memcache::KeyWalker keys{std::string_view{}};  // Those still to be looked up.
  bool is_meta = false;                          // One value, no END.
  bool has_cas = false;
  bool is_touch = false;
  store::Instant exptime{};
  bool has_hit = false;
  bool has_begun = false;  // A part of the reply is out.
};

class Delivery final : public call::ReplySource {
 public:
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): `rest_` is filled as far as it is used
  Delivery(StoreTarget& target, call::Call& call) noexcept : target_(target), call_(&call) {}

  void resume(call::Call& call) override;
  void discard(call::Call& call) override;

  /// Takes what is needed of a large value while its shard is locked.
  void take_value(const store::ItemView& item) noexcept;
  /// Keeps the keys that are left, which die with the request.
  void keep_keys();

 private:
  friend class StoreTarget;

  StoreTarget& target_;
  call::Call* call_;
  Retrieval retrieval_;
  bool has_value_ = false;
  store::ItemRef pieces_;
  std::size_t rest_bytes_ = 0;
  std::string kept_keys_;
  bool owns_keys_ = false;
  std::array<char, store::kInlineBytesMax> rest_;
};

/// What a storage command wants, and how its answer looks.
struct StorageOrder {
  store::StoreOptions options;
  bool is_meta = false;
  std::string_view key;       // Decoded; the caller's.
  memcache::MetaFlags flags;  // Of ms.
};

class Upload final : public call::BodySink {
 public:
  Upload(StoreTarget& target, const StorageOrder& order, std::uint64_t value_bytes) noexcept;

  call::Flow on_body(call::Call& call, std::string_view bytes, bool is_last) override;
  void on_body_lost(call::Call& call) override;

 private:
  friend class StoreTarget;

  bool is_small() const noexcept { return value_bytes_ <= store::kInlineBytesMax; }
  bool take(std::string_view bytes) noexcept;

  StoreTarget& target_;
  StorageOrder order_;
  std::uint64_t value_bytes_;
  std::uint64_t missing_bytes_;
  std::size_t end_bytes_ = 0;  // Of the "\r\n" behind the value.
  bool is_end_good_ = true;
  bool has_memory_ = true;
  store::PendingValue pending_;  // Of a value that is not small.
  std::array<char, memcache::kKeyBytesMax> key_text_;
  std::array<char, memcache::kOpaqueTokenBytesMax> opaque_text_;
  std::array<char, store::kInlineBytesMax> small_;
};

}  // namespace kvferry::route
