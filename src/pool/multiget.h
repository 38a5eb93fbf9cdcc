// MultiGet: one get of several keys, asked part by part and merged in request order.
//
//   keys    a   b   c   d          parts   0: a c   1: b d
//   parts   0   1   0   1          items   as they come, kept per part; a key without an item is a
//   miss
//
// Nothing is passed on before every part is complete, so that a failed part can still turn the
// whole into one error line (on_partial: error). When a part grows above kMergeBufferBytes passing
// on starts early: items leave as their turn comes, and a part that is ahead is paused. A failure
// after that ends the reply with the error line in place of END.
//
// Lifetime:  from MultiGets::make() to the last part of the parent's reply. It owns the calls of
// its parts. Threads:   one worker.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/byte_chain.h"
#include "base/slab_pool.h"
#include "call/call.h"
#include "net/loop.h"
#include "pool/options.h"
#include "pool/room.h"
#include "protocol/memcache/value_scanner.h"

namespace kvferry::pool {

class MultiGets;

/// Bytes of one part that are kept before passing on starts early, and the window of a part that is
/// ahead of its turn.
inline constexpr std::size_t kMergeBufferBytes = std::size_t{256} * 1024;

/// How the keys of a part are asked for.
enum class GetForm : std::uint8_t {
  Wide,  // One request, one reply: its items are known by their keys.
  Row,   // A request a key, one behind the other, and as many replies in the same order.
};

/// What stands in place of what a backend has not said.
struct MergeWords {
  std::string_view cut_line;          // A reply has ended in the middle, or is none.
  std::string_view foreign_key_line;  // An item for a key that was not asked for.
};

struct MergeRules {
  OnPartial on_partial;
  GetForm form;
  const MergeWords& words;
};

class MultiGet final : public call::ReplySink, public call::ReplySource {
 public:
  MultiGet(MultiGets& home, call::Call& parent, const MergeRules& rules);

  call::Flow on_reply(call::Call& call, const call::ReplyPart& part) override;
  void on_blocked(call::Call& call) override;
  void resume(call::Call& call) override;
  void discard(call::Call& call) override;

 private:
  friend class MultiGets;
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  enum class KeyState : std::uint8_t {
    Waiting,  // Its part has not come to it.
    Item,     // An item came, or is coming; nothing of it was passed on.
    Passing,  // ... and all but item_left bytes of it were passed on.
    Miss,     // Its part went past it.
    Failed,   // Its own reply, of a Row, is none.
  };
  struct Key {
    /// Where its bytes begin within texts_; once its item lies in Part::direct, where that begins.
    std::uint32_t begin = 0;
    std::uint32_t next_of_part = 0;  // The following key of the same part, or kNone.
    std::uint32_t item_left = 0;
    std::uint16_t part = 0;
    std::uint8_t text_bytes = 0;
    KeyState state = KeyState::Waiting;
  };
  struct Part {
    call::Call* call = nullptr;  // Null once its last reply part has come.
    memcache::ValueScanner scanner;
    base::ByteChain items;  // Items whose turn has not come, in key order.
    /// The reply whose items lie in the receive buffer, for as long as on_reply() runs.
    std::string_view direct;
    base::ByteChain error;           // The error line, when it failed.
    std::uint32_t next_key = kNone;  // First key that no item was seen for, or kNone.
    std::uint32_t last_key = 0;
    std::uint32_t item_key = kNone;  // Whose item has begun and not ended; a Row: nor its reply.
    std::uint32_t cut_key = kNone;   // ... when the part failed.
    std::uint32_t key_count = 0;
    bool is_direct = false;  // Items stay in `direct` instead of going to `items`.
    bool is_failed = false;
  };

  bool is_row() const { return form_ == GetForm::Row; }
  std::string_view text_of(const Key& key) const { return {texts_ + key.begin, key.text_bytes}; }
  void take(Part& part, const call::ReplyPart& reply);
  bool take_item(Part& part, const memcache::ScanEvent& event);
  void put_item(Part& part, std::uint32_t index, const memcache::ScanEvent& event);
  /// False when nothing of the reply is to be looked at any more.
  bool take_end(Part& part);
  bool take_line(Part& part, const memcache::ScanEvent& line);
  void keep(Part& part, std::string_view bytes);
  void fail(Part& part, std::string_view line);
  void finish_part(Part& part);
  /// Copies what was not passed on out of the receive buffer.
  void keep_direct(Part& part);
  /// True when the whole is finished and this object is gone.
  bool pass_on();
  /// False when it must wait for a part or for the parent.
  bool pass_on_key(Key& key);
  bool pass_on_item(Key& key, Part& part);
  void finish(std::string_view bytes, memcache::ReplyCode code, bool is_broken);
  void finish_all();
  void give_up();
  void pass(std::string_view bytes);
  void unpause(Part& part) const;
  void on_resumed() { pass_on(); }
  const Part* first_failed() const;
  base::BlockPool& blocks();

  MultiGets& home_;
  call::Call& parent_;
  const MergeWords& words_;
  net::Task resume_task_;
  Key* keys_ = nullptr;
  Part* parts_ = nullptr;
  char* texts_ = nullptr;
  Room room_;  // Of this, its keys, parts and texts.
  std::uint32_t key_count_ = 0;
  std::uint32_t next_key_ = 0;                    // First key that was not passed on.
  std::size_t window_bytes_ = kMergeBufferBytes;  // Of a part that is ahead of its turn.
  std::size_t kept_bytes_ = 0;                    // That home_ counts as kept.
  std::uint32_t parts_left_ = 0;
  std::uint16_t part_count_ = 0;
  OnPartial on_partial_;
  GetForm form_;
  bool is_starting_ = true;  // Parts are being sent: nothing is passed on yet.
  bool is_early_ = false;
  bool has_passed_ = false;  // The parent's sink has taken something.
  bool is_parent_paused_ = false;
  bool is_discarding_ = false;
  bool is_broken_ = false;
};

}  // namespace kvferry::pool
