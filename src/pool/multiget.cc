#include "pool/multiget.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "base/check.h"
#include "pool/backend.h"
#include "protocol/memcache/token_walker.h"

namespace kvferry::pool {

using call::Call;
using call::Flow;
using call::ReplyPart;
using memcache::ReplyCode;
using memcache::ScanEvent;

namespace {

constexpr std::string_view kEndLine = "END\r\n";
constexpr std::string_view kCutLine = "SERVER_ERROR kvferry: connection to backend lost\r\n";
constexpr std::string_view kForeignKeyLine =
    "SERVER_ERROR kvferry: backend sent a key that was not asked for\r\n";

}  // namespace

MultiGet::MultiGet(MultiGets& home, Call& parent, OnPartial on_partial)
    : home_(home),
      parent_(parent),
      resume_task_(net::Task::Callback::to<&MultiGet::on_resumed>(this)),
      on_partial_(on_partial) {}

base::BlockPool& MultiGet::blocks() {
  return home_.loop_.blocks();
}

Flow MultiGet::on_reply(Call& call, const ReplyPart& reply) {
  Part& part = parts_[call.owner_index];
  // The last part to come, when it comes whole, is passed on from where it lies.
  part.is_direct = parts_left_ == 1 && reply.is_first && reply.is_last && !is_starting_;
  if (!is_discarding_) {
    take(part, reply);
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
  if (!part.direct.empty()) {
    // The parent has paused in the middle: keep the rest.
    part.items.append(blocks(), std::exchange(part.direct, {}));
    part.is_direct = false;
  }
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
    part.is_cut = part.is_in_item;
    fail(part, kCutLine);
    return;
  }
  if (part.is_failed) {
    return;
  }
  part.scanner.feed(reply.bytes);
  for (;;) {
    const ScanEvent event = part.scanner.next();
    switch (event.kind) {
      case ScanEvent::Kind::NeedChunk:
      case ScanEvent::Kind::End:
        return;
      case ScanEvent::Kind::Error:
        fail(part, event.bytes);
        return;
      case ScanEvent::Kind::ItemRest:
        part.is_in_item = !event.is_item_complete;
        part.items.append(blocks(), event.bytes);
        break;
      case ScanEvent::Kind::Item:
        if (!take_item(part, event)) {
          return;
        }
        break;
    }
  }
}

bool MultiGet::take_item(Part& part, const ScanEvent& event) {
  while (part.next_key != kNone && text_of(keys_[part.next_key]) != event.key) {
    keys_[part.next_key].state = KeyState::Miss;
    part.next_key = keys_[part.next_key].next_of_part;
  }
  if (part.next_key == kNone) {
    fail(part, kForeignKeyLine);
    return false;
  }
  Key& key = keys_[part.next_key];
  key.state = KeyState::Item;
  key.item_left = static_cast<std::uint32_t>(event.total_bytes);
  part.next_key = key.next_of_part;
  part.is_in_item = !event.is_item_complete;
  if (part.is_direct) {
    // Items lie one behind the other in the reply.
    part.direct = part.direct.empty() ? event.bytes
                                      : std::string_view(part.direct.data(),
                                                         part.direct.size() + event.bytes.size());
  } else {
    part.items.append(blocks(), event.bytes);
  }
  return true;
}

void MultiGet::fail(Part& part, std::string_view line) {
  if (!std::exchange(part.is_failed, true)) {
    part.error.append(blocks(), line);
  }
}

void MultiGet::finish_part(Part& part) {
  home_.calls_.release(*std::exchange(part.call, nullptr));
  --parts_left_;
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
    if (part.is_cut && part.items.size() < key.item_left) {
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
    const std::string_view item = part.direct.substr(0, key.item_left);
    part.direct.remove_prefix(item.size());
    key.item_left = 0;
    pass(item);
    return true;
  }
  while (key.item_left > 0 && !part.items.empty() && !is_parent_paused_) {
    const std::string_view run = part.items.front().substr(0, key.item_left);
    key.state = KeyState::Passing;
    key.item_left -= static_cast<std::uint32_t>(run.size());
    pass(run);
    part.items.consume(run.size());
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

MultiGets::MultiGets(net::Loop& loop, call::CallPool& calls, base::MemoryBudget& budget)
    : loop_(loop), calls_(calls), budget_(budget) {}

bool MultiGets::start(Call& parent, const memcache::Request& request, const Placement& placement,
                      const std::vector<std::unique_ptr<Backend>>& backends, OnPartial on_partial,
                      std::uint64_t& random_state) {
  if (request.key_count <= kPlacesKeptMax) [[likely]] {
    return split(parent, request, placement, backends, on_partial, random_state);
  }
  // A line of millions of keys takes a hundred megabytes here; they may not stay.
  const std::size_t bytes = request.key_count * sizeof(Place);
  budget_.charge(bytes);
  places_.reserve(request.key_count);
  const bool is_split = split(parent, request, placement, backends, on_partial, random_state);
  places_ = std::vector<Place>();
  budget_.release(bytes);
  return is_split;
}

bool MultiGets::split(Call& parent, const memcache::Request& request, const Placement& placement,
                      const std::vector<std::unique_ptr<Backend>>& backends, OnPartial on_partial,
                      std::uint64_t& random_state) {
  if (!place_keys(request, placement, random_state)) {
    return false;
  }
  number_parts(backends.size());
  if (backend_of_part_.size() == 1) {
    part_of_backend_[backend_of_part_.front()] = MultiGet::kNone;
    backends[backend_of_part_.front()]->forward(parent, request.line);
    return true;
  }
  MultiGet& multiget = make(parent, request.keys.size(), on_partial);
  fill(multiget, parent);
  const std::string_view line = request.line;
  std::string_view prefix =
      line.substr(0, static_cast<std::size_t>(request.keys.data() - line.data()));
  while (prefix.ends_with(' ')) {
    prefix.remove_suffix(1);
  }
  for (std::uint16_t part = 0; part < multiget.part_count_; ++part) {
    send_part(multiget, part, *backends[backend_of_part_[part]], prefix);
  }
  multiget.is_starting_ = false;
  if (multiget.parts_left_ == 0) {
    multiget.pass_on();
  }
  return true;
}

bool MultiGets::place_keys(const memcache::Request& request, const Placement& placement,
                           std::uint64_t& random_state) {
  places_.clear();
  memcache::KeyWalker walker(request.keys);
  for (std::string_view key = walker.next(); !key.empty(); key = walker.next()) {
    const std::uint32_t backend = placement.select(key, random_state);
    if (backend == kNoServer) {
      return false;
    }
    places_.push_back(Place{.key = key, .backend = backend});
  }
  return true;
}

void MultiGets::number_parts(std::size_t backend_count) {
  part_of_backend_.resize(std::max(part_of_backend_.size(), backend_count), MultiGet::kNone);
  backend_of_part_.clear();
  for (const Place& place : places_) {
    std::uint32_t& part = part_of_backend_[place.backend];
    if (part == MultiGet::kNone) {
      part = static_cast<std::uint32_t>(backend_of_part_.size());
      backend_of_part_.push_back(place.backend);
    }
  }
}

MultiGet& MultiGets::make(Call& parent, std::size_t text_bytes, OnPartial on_partial) {
  // The object and everything it keeps lie in one piece: with thousands of gets in flight each
  // comes out of the cache once.
  const std::size_t key_count = places_.size();
  const std::size_t part_count = backend_of_part_.size();
  const std::size_t bytes = sizeof(MultiGet) + part_count * sizeof(MultiGet::Part) +
                            key_count * sizeof(MultiGet::Key) + text_bytes;
  base::Block* block = nullptr;
  char* memory = nullptr;
  if (bytes <= base::kBlockBytesLarge - sizeof(base::Block)) {
    block = loop_.blocks().acquire(bytes > base::kBlockBytesSmall - sizeof(base::Block));
    memory = block->bytes();
  } else {
    budget_.charge(bytes);
    memory = static_cast<char*>(::operator new(bytes));
  }
  auto& multiget = *new (memory) MultiGet(*this, parent, on_partial);
  multiget.block_ = block;
  multiget.heap_bytes_ = block == nullptr ? bytes : 0;
  memory += sizeof(MultiGet);
  multiget.parts_ = reinterpret_cast<MultiGet::Part*>(memory);
  std::uninitialized_default_construct_n(multiget.parts_, part_count);
  multiget.keys_ = reinterpret_cast<MultiGet::Key*>(memory + part_count * sizeof(MultiGet::Part));
  std::uninitialized_default_construct_n(multiget.keys_, key_count);
  multiget.texts_ =
      memory + part_count * sizeof(MultiGet::Part) + key_count * sizeof(MultiGet::Key);
  multiget.key_count_ = static_cast<std::uint32_t>(key_count);
  multiget.part_count_ = static_cast<std::uint16_t>(part_count);
  multiget.parts_left_ = multiget.part_count_;
  parent.source = &multiget;
  return multiget;
}

void MultiGets::fill(MultiGet& multiget, Call& parent) {
  for (std::uint16_t i = 0; i < multiget.part_count_; ++i) {
    MultiGet::Part& part = multiget.parts_[i];
    Call& call = calls_.acquire();
    call.sink = &multiget;
    call.started = parent.started;
    call.lane = parent.lane;
    call.command = parent.command;
    call.reply_kind = parent.reply_kind;
    call.owner_index = i;
    part.call = &call;
    part.next_key = MultiGet::kNone;
  }
  std::uint32_t at = 0;
  for (std::uint32_t i = 0; i < multiget.key_count_; ++i) {
    const Place& place = places_[i];
    MultiGet::Key& key = multiget.keys_[i];
    key.text_begin = at;
    key.text_bytes = static_cast<std::uint8_t>(place.key.size());
    std::memcpy(multiget.texts_ + at, place.key.data(), place.key.size());
    at += key.text_bytes;
    key.part = static_cast<std::uint16_t>(part_of_backend_[place.backend]);
    key.next_of_part = MultiGet::kNone;
    MultiGet::Part& part = multiget.parts_[key.part];
    if (part.next_key == MultiGet::kNone) {
      part.next_key = i;
    } else {
      multiget.keys_[part.last_key].next_of_part = i;
    }
    part.last_key = i;
  }
  for (const std::uint32_t backend : backend_of_part_) {
    part_of_backend_[backend] = MultiGet::kNone;
  }
}

void MultiGets::send_part(MultiGet& multiget, std::uint16_t index, Backend& backend,
                          std::string_view prefix) {
  const MultiGet::Part& part = multiget.parts_[index];
  Call& call = *part.call;
  Failure why;
  Link* link = backend.admit(call, why);
  if (link == nullptr) {
    backend.refuse(call, why);
    return;
  }
  link->write(prefix);
  std::size_t bytes = prefix.size() + 2;
  for (std::uint32_t i = part.next_key; i != MultiGet::kNone; i = multiget.keys_[i].next_of_part) {
    const std::string_view key = multiget.text_of(multiget.keys_[i]);
    link->write(" ");
    link->write(key);
    bytes += 1 + key.size();
  }
  link->write("\r\n");
  backend.stats().bytes_sent.add(bytes);
  link->commit(call);
}

void MultiGets::release(MultiGet& multiget) {
  for (std::uint16_t i = 0; i < multiget.part_count_; ++i) {
    multiget.parts_[i].~Part();
  }
  base::Block* block = multiget.block_;
  const std::size_t heap_bytes = multiget.heap_bytes_;
  multiget.~MultiGet();
  if (block != nullptr) {
    base::BlockPool::release(block);
  } else {
    ::operator delete(&multiget);
    budget_.release(heap_bytes);
  }
}

}  // namespace kvferry::pool
