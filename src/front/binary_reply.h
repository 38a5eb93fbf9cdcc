// BinaryReply: stands between whoever answers a call and the session of a binary client, and makes
// a binary response of the meta reply, part by part.
//
//   Line --the line says a value--> Value --its last byte--> End --last part--> (gone)
//     |                       \--a number--> Number --last part--> (gone)
//     \--any other line, or an error--> End
//
// The header of a response holds the length of its value and nothing of what comes after it, so
// it can leave before the value has come.
//
// Lifetime:  from the dispatch of a packet to the last part of its reply; pieces of a BinaryDesk.
// Threads:   one worker.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/slab_pool.h"
#include "call/call.h"
#include "protocol/memcache_binary/meta_reply.h"
#include "protocol/memcache_binary/request.h"

namespace kvferry::front {

class BinaryDesk;

/// Makes `out` a whole response without extras or key.
void compose_binary_text(std::string& out, memcache_binary::Opcode opcode, std::uint32_t opaque,
                         memcache_binary::Status status, std::string_view text);

class BinaryReply final : public call::ReplySink {
 public:
  /// `session` hears the parts; it outlives the call.
  BinaryReply(BinaryDesk& desk, call::ReplySink& session,
              const memcache_binary::Request& packet) noexcept;

  // call::ReplySink
  call::Flow on_reply(call::Call& call, const call::ReplyPart& part) override;
  void on_blocked(call::Call& call) override { session_.on_blocked(call); }

 private:
  enum class Phase : std::uint8_t { Line, Value, Number, End };

  std::string_view read_line(const call::ReplyPart& part);
  void compose_head(const memcache_binary::MetaReply& reply);
  call::Flow pass_value(call::Call& call, const call::ReplyPart& part, std::string_view bytes);
  void take_digits(std::string_view bytes);
  call::Flow pass_number(call::Call& call, const call::ReplyPart& part);
  call::Flow pass(call::Call& call, const call::ReplyPart& like, std::string_view bytes);
  call::Flow pass_broken(call::Call& call, const call::ReplyPart& part);

  BinaryDesk& desk_;
  call::ReplySink& session_;
  std::uint64_t value_left_ = 0;  // Bytes of the value that have not come.
  std::uint64_t number_ = 0;      // Of increment and decrement, as far as it has come.
  std::uint64_t cas_ = 0;         // The same.
  std::uint32_t opaque_;
  memcache_binary::Opcode opcode_;
  memcache_binary::Order order_;
  Phase phase_ = Phase::Line;
  bool has_begun_ = false;  // The session has had the first part.
  std::uint8_t key_bytes_ = 0;
  std::array<char, memcache::kKeyBytesMax> key_;  // Of opcodes that repeat it.
};

/// What the binary sessions of one service share: memory for replies in flight, and texts that are
/// composed in.
class BinaryDesk {
 public:
  explicit BinaryDesk(base::MemoryBudget& budget) : replies_(sizeof(BinaryReply), budget) {}

  BinaryReply& open_reply(call::ReplySink& session,
                          const memcache_binary::Request& packet) noexcept {
    return *std::construct_at(static_cast<BinaryReply*>(replies_.acquire()), *this, session,
                              packet);
  }
  void close_reply(BinaryReply& reply) noexcept {
    std::destroy_at(&reply);
    replies_.release(&reply);
  }
  /// For the request that is being sent.
  std::string& request_text() noexcept { return request_text_; }
  /// Gives back what a large value has made of request_text().
  void shrink_request_text() noexcept;
  /// For the part that is being passed on.
  std::string& reply_text() noexcept { return reply_text_; }
  /// Gives memory of earlier bursts back; call about once a second.
  void trim() noexcept { replies_.trim(); }

 private:
  base::SlabPool replies_;
  std::string request_text_;
  std::string reply_text_;
};

}  // namespace kvferry::front
