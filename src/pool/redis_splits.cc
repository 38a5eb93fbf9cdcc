#include "pool/redis_splits.h"

#include <algorithm>
#include <memory>

#include "pool/multigets.h"
#include "protocol/resp/request_writer.h"

namespace kvferry::pool {

using call::Call;
using redis::Request;

std::uint32_t RedisSplits::place(const Request& request) {
  places_.clear();
  const Placement& placement = *kept_.snapshot().placement;
  std::uint32_t first = kNoServer;
  bool is_one = true;
  for (std::size_t at = 1; at < request.args.size(); at += stride_of(request.command)) {
    const std::uint32_t backend = placement.select(request.args[at], kept_.random_state());
    if (backend == kNoServer) {
      return kNoServer;
    }
    first = at == 1 ? backend : first;
    is_one = is_one && backend == first;
    places_.push_back(backend);
  }
  return is_one ? first : kSeveral;
}

void RedisSplits::number_parts() {
  part_of_backend_.assign(kept_.list().size(), kNoServer);
  backend_of_part_.clear();
  for (std::uint32_t& place : places_) {
    std::uint32_t& part = part_of_backend_[place];
    if (part == kNoServer) {
      part = static_cast<std::uint32_t>(backend_of_part_.size());
      backend_of_part_.push_back(place);
    }
    place = part;
  }
}

void RedisSplits::start(Call& parent, const Request& request) {
  number_parts();
  RedisSplit& split = make(parent, request);
  const std::uint32_t count = split.part_count_;
  for (std::uint32_t part = 0; part < count; ++part) {
    send_part(split, part, request);
  }
  trim();
  split.is_starting_ = false;
  if (split.parts_left_ == 0) {
    split.finish_all();
  }
}

RedisSplit& RedisSplits::make(Call& parent, const Request& request) {
  const std::size_t part_count = backend_of_part_.size();
  const std::size_t bytes = sizeof(RedisSplit) + part_count * sizeof(RedisSplit::Part) +
                            places_.size() * sizeof(RedisSplit::Key);
  Room room;
  char* memory = acquire_room(loop_.blocks(), bytes, room);
  auto& split = *new (memory) RedisSplit(*this, parent, request.command, request.version,
                                         options().on_partial);
  split.room_ = room;
  memory += sizeof(RedisSplit);
  split.parts_ = reinterpret_cast<RedisSplit::Part*>(memory);
  std::uninitialized_default_construct_n(split.parts_, part_count);
  split.keys_ = reinterpret_cast<RedisSplit::Key*>(memory + part_count * sizeof(RedisSplit::Part));
  std::uninitialized_default_construct_n(split.keys_, places_.size());
  split.key_count_ = static_cast<std::uint32_t>(places_.size());
  split.part_count_ = split.parts_left_ = static_cast<std::uint32_t>(part_count);
  for (std::uint32_t i = 0; i < split.part_count_; ++i) {
    Call& call = calls_.acquire();
    call.sink = &split;
    call.started = parent.started;
    call.lane = parent.lane;
    call.command = parent.command;
    call.reply_kind = parent.reply_kind;
    call.client_fd = parent.client_fd;
    call.owner_index = i;
    split.parts_[i].call = &call;
  }
  for (std::uint32_t i = 0; i < split.key_count_; ++i) {
    RedisSplit::Part& part = split.parts_[places_[i]];
    split.keys_[i].part = places_[i];
    (part.last_key == RedisSplit::kNone ? part.first_key
                                        : split.keys_[part.last_key].next_of_part) = i;
    part.last_key = i;
    ++part.key_count;
  }
  parent.source = &split;
  return split;
}

void RedisSplits::send_part(RedisSplit& split, std::uint32_t index, const Request& request) {
  const RedisSplit::Part& part = split.parts_[index];
  Call& call = *part.call;
  Backend& lane = kept_.list()[backend_of_part_[index]]->lane(request.version, request.database);
  Failure why;
  Link* link = lane.admit(call, why);
  if (link == nullptr) {
    lane.refuse(call, why);
    return;
  }
  std::size_t bytes = 0;
  const auto write = [&](std::string_view piece) {
    link->write(piece);
    bytes += piece.size();
  };
  const std::uint32_t stride = stride_of(request.command);
  write(resp::LengthLine('*', 1 + std::uint64_t{part.key_count} * stride).text());
  resp::write_bulk(request.args.front(), write);
  for (std::uint32_t i = part.first_key; i != RedisSplit::kNone; i = split.keys_[i].next_of_part) {
    for (const std::string_view word : request.args.subspan(1 + std::size_t{i} * stride, stride)) {
      resp::write_bulk(word, write);
    }
  }
  lane.stats().bytes_sent.add(bytes);
  link->commit(call);
}

/// Room that a request of very many keys took is not kept.
void RedisSplits::trim() {
  if (places_.capacity() > kPlacesKeptMax) {
    places_ = std::vector<std::uint32_t>();
  }
}

void RedisSplits::release(RedisSplit& split) {
  for (std::uint32_t i = 0; i < split.part_count_; ++i) {
    split.parts_[i].~Part();
  }
  const Room room = split.room_;
  split.~RedisSplit();
  release_room(loop_.blocks(), room, &split);
}

}  // namespace kvferry::pool
