#include "pool/multiget.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "pool/multigets.h"

namespace kvferry::pool {

using call::Call;
using call::Flow;
using call::ReplyPart;
using memcache::ReplyCode;
using memcache::ScanEvent;

namespace {

constexpr std::string_view kEndLine = "END\r\n";

/// Whether it may hold items; other replies are one line.
bool is_of_items(ReplyCode code) {
  return code == ReplyCode::Value || code == ReplyCode::End;
}

}  // namespace

MultiGet::MultiGet(MultiGets& home, Call& parent, const MergeRules& rules)
    : home_(home),
      parent_(parent),
      words_(rules.words),
      resume_task_(net::Task::Callback::to<&MultiGet::on_resumed>(this)),
      on_partial_(rules.on_partial),
      form_(rules.form) {}

base::BlockPool& MultiGet::blocks() {
  return home_.loop_.blocks();
}

Flow MultiGet::on_reply(Call& call, const ReplyPart& reply) {
  Part& part = parts_[call.owner_index];
  // The last part to come, when it comes whole, is passed on from where it lies.
  part.is_direct = parts_left_ == 1 && reply.is_first && reply.is_last && !is_starting_ &&
                   is_of_items(reply.code);
  if (part.is_direct && part_count_ == 1 && !is_row() && !is_discarding_) {
    // It answers for all keys: nothing is to be merged.
    finish_part(part);
    finish(reply.bytes, reply.code, false);
    return Flow::Continue;
  }
  const std::size_t kept_before = kept_bytes_;
  if (!is_discarding_) {
    take(part, reply);
  }
  if (kept_bytes_ != kept_before) {
    home_.on_kept(kept_bytes_ - kept_before);
  }
  if (reply.is_last) {
    finish_part(part);
  } else if (part.items.size() > kMergeBufferBytes) {
    is_early_ = true;
  }
  if (is_starting_) {
    return Flow::Continue;
  }
  if ((parts_left_ == 0 || is_early_) && pass_on()) {
    return Flow::Continue;
  }
  keep_direct(part);
  if (!reply.is_last && part.items.size() > window_bytes_) {
    call.is_paused = true;
    return Flow::Pause;
  }
  return Flow::Continue;
}

void MultiGet::on_blocked(Call& call) {
  if (is_parent_paused_) {
    parent_.sink->on_blocked(parent_);
    return;
  }
  // Its turn has not come because of another backend: keep more of it rather than hold up others.
  window_bytes_ = call::kSpillBytesMax;
  unpause(parts_[call.owner_index]);
}

void MultiGet::take(Part& part, const ReplyPart& reply) {
  if (reply.is_broken) {
    part.cut_key = part.item_key;
    fail(part, words_.cut_line);
    return;
  }
  if (part.is_failed) {
    return;
  }
  if (part.is_direct) {
    part.direct = reply.bytes;
  }
  part.scanner.feed(reply.bytes);
  for (bool goes_on = true; goes_on;) {
    const ScanEvent event = part.scanner.next();
    switch (event.kind) {
      case ScanEvent::Kind::NeedChunk:
        return;
      case ScanEvent::Kind::End:
        goes_on = take_end(part);
        break;
      case ScanEvent::Kind::Error:
        goes_on = take_line(part, event);
        break;
      case ScanEvent::Kind::ItemRest:
        if (event.is_item_complete && !is_row()) {
          part.item_key = kNone;
        }
        keep(part, event.bytes);
        break;
      case ScanEvent::Kind::Item:
        goes_on = take_item(part, event);
        break;
    }
  }
}

bool MultiGet::take_item(Part& part, const ScanEvent& event) {
  if (is_row()) {
    if (part.next_key == kNone || keys_[part.next_key].state != KeyState::Waiting) {
      fail(part, words_.cut_line);
      return false;
    }
    put_item(part, part.next_key, event);
    part.item_key = part.next_key;
    return true;
  }
  while (part.next_key != kNone && text_of(keys_[part.next_key]) != event.key) {
    keys_[part.next_key].state = KeyState::Miss;
    part.next_key = keys_[part.next_key].next_of_part;
  }
  if (part.next_key == kNone) {
    fail(part, words_.foreign_key_line);
    return false;
  }
  const std::uint32_t index = std::exchange(part.next_key, keys_[part.next_key].next_of_part);
  put_item(part, index, event);
  part.item_key = event.is_item_complete ? kNone : index;
  return true;
}

void MultiGet::put_item(Part& part, std::uint32_t index, const ScanEvent& event) {
  Key& key = keys_[index];
  key.state = KeyState::Item;
  key.item_left = static_cast<std::uint32_t>(event.total_bytes);
  if (part.is_direct) {
    key.begin = static_cast<std::uint32_t>(event.bytes.data() - part.direct.data());
  } else {
    keep(part, event.bytes);
  }
}

bool MultiGet::take_end(Part& part) {
  if (!is_row() || part.next_key == kNone) {
    return false;
  }
  Key& key = keys_[part.next_key];
  if (key.state == KeyState::Waiting) {
    key.state = KeyState::Miss;
  }
  part.next_key = key.next_of_part;
  part.item_key = kNone;
  return true;
}

/// A line that is neither an item nor the END. Error lines go to the client, and so does what
/// answers another command; a word that nobody knows does not, nor a value of another kind.
bool MultiGet::take_line(Part& part, const ScanEvent& line) {
  const ReplyCode code = memcache::find_reply_code(line.bytes);
  const bool is_answer = code != ReplyCode::Other && code != ReplyCode::None;
  if (!is_row() || part.next_key == kNone || code == ReplyCode::MetaVa) {
    fail(part, is_answer && code != ReplyCode::MetaVa ? line.bytes : words_.cut_line);
    return false;
  }
  Key& key = keys_[part.next_key];
  if (is_answer) {
    ScanEvent item = line;
    item.total_bytes = line.bytes.size();
    put_item(part, part.next_key, item);
  } else {
    key.state = KeyState::Failed;
  }
  part.next_key = key.next_of_part;
  return true;
}

void MultiGet::keep(Part& part, std::string_view bytes) {
  part.items.append(blocks(), bytes);
  kept_bytes_ += bytes.size();
}

void MultiGet::fail(Part& part, std::string_view line) {
  if (!std::exchange(part.is_failed, true)) {
    part.error.append(blocks(), line);
  }
}

void MultiGet::finish_part(Part& part) {
  home_.calls_.release(*std::exchange(part.call, nullptr));
  --parts_left_;
  if (is_row() && part.next_key != kNone) {
    fail(part, words_.cut_line);  // The replies that are missing will not come.
  }
}

void MultiGet::keep_direct(Part& part) {
  if (part.direct.empty()) {
    return;
  }
  const std::size_t kept_before = kept_bytes_;
  for (std::uint32_t i = next_key_; i < key_count_; ++i) {
    const Key& key = keys_[i];
    if (&parts_[key.part] == &part && key.state == KeyState::Item) {
      keep(part, part.direct.substr(key.begin, key.item_left));
    }
  }
  home_.on_kept(kept_bytes_ - kept_before);
  part.direct = {};
  part.is_direct = false;
}

const MultiGet::Part* MultiGet::first_failed() const {
  const Part* end = parts_ + part_count_;
  const Part* found = std::find_if(static_cast<const Part*>(parts_), end,
                                   [](const Part& part) { return part.is_failed; });
  return found == end ? nullptr : found;
}

bool MultiGet::pass_on() {
  if (is_discarding_) {
    if (parts_left_ == 0) {
      finish({}, ReplyCode::ServerError, is_broken_);
      return true;
    }
    return false;
  }
  if (on_partial_ == OnPartial::Error && !is_early_) {
    if (const Part* failed = first_failed()) {
      finish(failed->error.front(), ReplyCode::ServerError, false);
      return true;
    }
  }
  while (next_key_ < key_count_) {
    if (is_parent_paused_) {
      return false;
    }
    Key& key = keys_[next_key_];
    Part& part = parts_[key.part];
    if (next_key_ == part.cut_key &&
        (key.state != KeyState::Passing || part.items.size() < key.item_left)) {
      if (key.state == KeyState::Passing) {
        const bool is_over = parts_left_ == 0;
        give_up();  // This object is gone when it is over.
        return is_over;
      }
      // Nothing of the item that was cut was passed on: a failed key like those after it.
      part.items.clear();
      key.state = KeyState::Waiting;
      key.item_left = 0;
    }
    if (!pass_on_key(key)) {
      return false;
    }
    ++next_key_;
  }
  if (is_parent_paused_ || parts_left_ != 0) {
    return false;
  }
  finish_all();
  return true;
}

bool MultiGet::pass_on_key(Key& key) {
  Part& part = parts_[key.part];
  switch (key.state) {
    case KeyState::Miss:
      return true;
    case KeyState::Failed:
      pass(words_.cut_line);
      return true;
    case KeyState::Item:
    case KeyState::Passing:
      return pass_on_item(key, part);
    case KeyState::Waiting:
      if (part.call != nullptr) {
        return false;
      }
      if (part.is_failed && on_partial_ == OnPartial::Element) {
        pass(part.error.front());
      }
      return true;
  }
  return true;
}

bool MultiGet::pass_on_item(Key& key, Part& part) {
  if (!part.direct.empty()) {
    if (is_parent_paused_) {
      return false;
    }
    pass(part.direct.substr(key.begin, std::exchange(key.item_left, 0)));
    return true;
  }
  while (key.item_left > 0 && !part.items.empty() && !is_parent_paused_) {
    const std::string_view run = part.items.front().substr(0, key.item_left);
    key.state = KeyState::Passing;
    key.item_left -= static_cast<std::uint32_t>(run.size());
    pass(run);
    part.items.consume(run.size());
    if (is_early_) {  // Otherwise all go at once, at the end.
      kept_bytes_ -= run.size();
      home_.on_dropped(run.size());
    }
  }
  unpause(part);
  return key.item_left == 0;
}

void MultiGet::finish_all() {
  const Part* failed = first_failed();
  if (failed != nullptr && on_partial_ == OnPartial::Error) {
    finish(failed->error.front(), ReplyCode::ServerError, false);
    return;
  }
  finish(kEndLine, ReplyCode::End, false);
}

void MultiGet::give_up() {
  // An item was passed on in part and its rest will never come: the parent's stream is lost. Parts
  // that are still outstanding are waited for, since their calls are ours.
  is_broken_ = true;
  if (parts_left_ == 0) {
    finish({}, ReplyCode::ServerError, true);
  } else {
    discard(parent_);
  }
}

void MultiGet::finish(std::string_view bytes, ReplyCode code, bool is_broken) {
  const bool is_first = !std::exchange(has_passed_, true);
  Call& parent = parent_;
  home_.on_dropped(kept_bytes_);
  home_.on_over(key_count_);
  parent.sink->on_reply(parent, ReplyPart{.bytes = bytes,
                                          .code = is_first ? code : ReplyCode::Value,
                                          .is_first = is_first,
                                          .is_last = true,
                                          .is_broken = is_broken && !is_first});
  home_.release(*this);
}

void MultiGet::pass(std::string_view bytes) {
  const bool is_first = !std::exchange(has_passed_, true);
  const Flow flow = parent_.sink->on_reply(parent_, ReplyPart{.bytes = bytes,
                                                              .code = ReplyCode::Value,
                                                              .is_first = is_first,
                                                              .is_last = false,
                                                              .is_sure = !is_early_});
  if (flow == Flow::Pause) {
    is_parent_paused_ = true;
  }
}

void MultiGet::unpause(Part& part) const {
  if (part.call != nullptr && part.call->is_paused && part.items.size() <= window_bytes_ / 2) {
    part.call->is_paused = false;
    part.call->source->resume(*part.call);
  }
}

void MultiGet::resume(Call& /*call*/) {
  is_parent_paused_ = false;
  home_.loop_.defer(resume_task_);
}

void MultiGet::discard(Call& /*call*/) {
  is_discarding_ = true;
  is_parent_paused_ = false;
  for (std::uint16_t i = 0; i < part_count_; ++i) {
    Part& part = parts_[i];
    part.items.clear();
    if (part.call != nullptr && std::exchange(part.call->is_paused, false)) {
      part.call->source->discard(*part.call);
    }
  }
  home_.loop_.defer(resume_task_);
}

}  // namespace kvferry::pool
