#include "pool/multigets.h"

#include <cstring>
#include <memory>
#include <new>

namespace kvferry::pool {

using call::Call;

MultiGets::MultiGets(net::Loop& loop, call::CallPool& calls, base::MemoryBudget& budget)
    : loop_(loop), calls_(calls), budget_(budget) {}

void MultiGets::begin(std::size_t key_count) {
  end();  // The answer to one get may begin another.
  places_.clear();
  if (key_count > kPlacesKeptMax) [[unlikely]] {
    // A line of millions of keys takes a hundred megabytes here; they may not stay.
    charged_places_ = key_count;
    budget_.charge(charged_places_ * sizeof(Place));
    places_.reserve(key_count);
  }
}

void MultiGets::end() {
  if (charged_places_ != 0) [[unlikely]] {
    places_ = std::vector<Place>();
    budget_.release(charged_places_ * sizeof(Place));
    charged_places_ = 0;
  }
}

MultiGet& MultiGets::make(Call& parent, std::size_t text_bytes, std::size_t part_count,
                          const MergeRules& rules) {
  const std::size_t key_count = places_.size();
  const std::size_t bytes = sizeof(MultiGet) + part_count * sizeof(MultiGet::Part) +
                            key_count * sizeof(MultiGet::Key) + text_bytes;
  Room room;
  char* memory = acquire_room(loop_.blocks(), bytes, room);
  auto& multiget = *new (memory) MultiGet(*this, parent, rules);
  multiget.room_ = room;
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
  fill(multiget, parent);
  return multiget;
}

void MultiGets::fill(MultiGet& multiget, Call& parent) {
  for (std::uint16_t i = 0; i < multiget.part_count_; ++i) {
    Call& call = calls_.acquire();
    call.sink = &multiget;
    call.started = parent.started;
    call.lane = parent.lane;
    call.command = parent.command;
    call.reply_kind = parent.reply_kind;
    call.client_fd = parent.client_fd;
    call.owner_index = i;
    multiget.parts_[i].call = &call;
  }
  std::uint32_t at = 0;
  for (std::uint32_t i = 0; i < multiget.key_count_; ++i) {
    const Place& place = places_[i];
    MultiGet::Key& key = multiget.keys_[i];
    key.begin = at;
    key.text_bytes = static_cast<std::uint8_t>(place.key.size());
    std::memcpy(multiget.texts_ + at, place.key.data(), place.key.size());
    at += key.text_bytes;
    key.part = static_cast<std::uint16_t>(place.part);
    key.next_of_part = MultiGet::kNone;
    MultiGet::Part& part = multiget.parts_[key.part];
    if (part.next_key == MultiGet::kNone) {
      part.next_key = i;
    } else {
      multiget.keys_[part.last_key].next_of_part = i;
    }
    part.last_key = i;
    ++part.key_count;
  }
}

void MultiGets::start_passing(MultiGet& multiget) {
  multiget.is_starting_ = false;
  if (multiget.parts_left_ == 0) {
    multiget.pass_on();
  }
}

void MultiGets::release(MultiGet& multiget) {
  for (std::uint16_t i = 0; i < multiget.part_count_; ++i) {
    multiget.parts_[i].~Part();
  }
  const Room room = multiget.room_;
  multiget.~MultiGet();
  release_room(loop_.blocks(), room, &multiget);
}

}  // namespace kvferry::pool
