#include "pool/redis_split.h"

#include <algorithm>
#include <sys/uio.h>
#include <utility>
#include <vector>

#include "pool/merge_text.h"
#include "pool/redis_merge.h"
#include "pool/redis_splits.h"
#include "protocol/resp/request_writer.h"

namespace kvferry::pool {

using call::Call;
using call::Flow;
using call::ReplyPart;
using memcache::ReplyCode;
using redis::Merge;
using resp::ArrayWalker;

RedisSplit::RedisSplit(RedisSplits& home, Call& parent, const redis::Command& command,
                       resp::Version version, OnPartial on_partial)
    : home_(home),
      parent_(parent),
      command_(command),
      resume_task_(net::Task::Callback::to<&RedisSplit::pass_on>(this)),
      version_(version),
      on_partial_(on_partial) {}

base::BlockPool& RedisSplit::blocks() const {
  return home_.loop_.blocks();
}

const PoolOptions& RedisSplit::options() const {
  return home_.options();
}

Flow RedisSplit::on_reply(Call& call, const ReplyPart& reply) {
  Part& part = parts_[call.owner_index];
  if (!part.is_failed && !is_too_large_) {
    take(part, reply);
  }
  if (reply.is_last) {
    finish_part(part);
    if (parts_left_ == 0 && !is_starting_) {
      finish_all();
    }
  }
  return Flow::Continue;
}

void RedisSplit::take(Part& part, const ReplyPart& reply) {
  if (reply.is_broken) {
    fail(part, lost_part_line(options()));
    return;
  }
  if (reply.is_first && memcache::is_error(reply.code)) {
    fail(part, reply.is_last ? reply.bytes : bad_part_line(options()));
    return;
  }
  switch (command_.merge) {
    case Merge::KeyedArray:
      take_elements(part, reply);
      return;
    case Merge::Sum:
      if (!read_number_reply(reply.bytes, part.number) || part.number < 0) {
        fail(part, bad_part_line(options()));
      }
      return;
    default:
      part.number = part.key_count;
      if (reply.code != ReplyCode::Ok) {
        fail(part, bad_part_line(options()));
      }
      return;
  }
}

void RedisSplit::take_elements(Part& part, const ReplyPart& reply) {
  if (!reply.is_first || !reply.is_last) {
    keep(part, reply.bytes);
    if (reply.is_last && !is_too_large_ && !measure_kept(part)) {
      fail(part, bad_part_line(options()));
    }
    return;
  }
  ArrayWalker walker;
  std::uint32_t key = part.first_key;
  std::size_t head_bytes = 0;
  if (!measure(reply.bytes, walker, key, head_bytes) || !walker.is_over() || key != kNone) {
    fail(part, bad_part_line(options()));
    return;
  }
  keep(part, reply.bytes.substr(head_bytes));
}

bool RedisSplit::measure(std::string_view bytes, ArrayWalker& walker, std::uint32_t& key,
                         std::size_t& head_bytes) {
  while (!bytes.empty()) {
    const bool is_head = !walker.has_head();
    const ArrayWalker::Step step = walker.next(bytes);
    if (step.found == ArrayWalker::Found::Bad || (!is_head && key == kNone)) {
      return false;
    }
    if (is_head) {
      head_bytes += step.taken_bytes;
    } else {
      keys_[key].element_bytes += static_cast<std::uint32_t>(step.taken_bytes);
    }
    if (step.found == ArrayWalker::Found::Element) {
      key = keys_[key].next_of_part;
    }
    bytes.remove_prefix(step.taken_bytes);
  }
  return true;
}

bool RedisSplit::measure_kept(Part& part) {
  ArrayWalker walker;
  std::uint32_t key = part.first_key;
  std::size_t head_bytes = 0;
  std::vector<iovec>& runs = home_.runs_;
  runs.resize(part.bytes.size() / (base::kBlockBytesSmall / 2) + 4);
  runs.resize(part.bytes.gather(runs.data(), runs.size()));
  const bool is_good = std::all_of(runs.begin(), runs.end(), [&](const iovec& run) {
    return measure({static_cast<const char*>(run.iov_base), run.iov_len}, walker, key, head_bytes);
  });
  runs = std::vector<iovec>();
  if (!is_good || !walker.is_over() || key != kNone) {
    return false;
  }
  part.bytes.consume(head_bytes);
  return true;
}

void RedisSplit::keep(Part& part, std::string_view bytes) {
  kept_bytes_ += bytes.size();
  if (kept_bytes_ > options().redis.max_merge_bytes) {
    is_too_large_ = true;
    for (std::uint32_t i = 0; i < part_count_; ++i) {
      parts_[i].bytes.clear();
    }
    return;
  }
  part.bytes.append(blocks(), bytes);
}

void RedisSplit::fail(Part& part, std::string_view error) {
  part.is_failed = true;
  part.bytes.clear();
  part.error = error;
}

void RedisSplit::finish_part(Part& part) {
  home_.calls_.release(*std::exchange(part.call, nullptr));
  --parts_left_;
}

const RedisSplit::Part* RedisSplit::first_failed() const {
  const Part* end = parts_ + part_count_;
  const Part* found = std::find_if(static_cast<const Part*>(parts_), end,
                                   [](const Part& part) { return part.is_failed; });
  return found == end ? nullptr : found;
}

std::size_t RedisSplit::failed_count() const {
  return static_cast<std::size_t>(
      std::count_if(parts_, parts_ + part_count_, [](const Part& part) { return part.is_failed; }));
}

void RedisSplit::finish_all() {
  if (is_too_large_) {
    finish(too_large_line(options()), ReplyCode::ServerError);
  } else if (is_keyed()) {
    finish_elements();
  } else {
    finish_numbers();
  }
}

void RedisSplit::finish_numbers() {
  std::int64_t sum = 0;
  for (std::uint32_t i = 0; i < part_count_; ++i) {
    sum += parts_[i].is_failed ? 0 : parts_[i].number;
  }
  const Part* failed = first_failed();
  // OK may not be said of what did not happen.
  const bool may_hide = on_partial_ == OnPartial::Null && command_.merge == Merge::Sum;
  if (failed != nullptr && !may_hide) {
    finish(partial_line(options(), PartialResult{.command = command_.name,
                                                 .done = part_count_ - failed_count(),
                                                 .total = part_count_,
                                                 .counted = sum,
                                                 .first_failure = failed->error}),
           ReplyCode::ServerError);
    return;
  }
  if (command_.merge == Merge::Sum) {
    finish(resp::LengthLine(':', static_cast<std::uint64_t>(sum)).text(), ReplyCode::Number);
    return;
  }
  finish("+OK\r\n", ReplyCode::Ok);
}

void RedisSplit::finish_elements() {
  const Part* failed = first_failed();
  if (failed != nullptr && on_partial_ == OnPartial::Error) {
    finish(part_failure(options(), failed->error), ReplyCode::ServerError);
    return;
  }
  if (merged_bytes_max() <= kComposeBytesMax) {
    compose();
    return;
  }
  pass(resp::LengthLine('*', key_count_).text());
  pass_on();
}

std::string_view RedisSplit::substitute(const Part& part) const {
  if (on_partial_ == OnPartial::Null) {
    return version_ == resp::Version::Two ? "$-1\r\n" : "_\r\n";
  }
  return part_failure(options(), part.error);
}

std::size_t RedisSplit::merged_bytes_max() const {
  std::size_t bytes = kept_bytes_ + resp::LengthLine('*', key_count_).text().size();
  for (std::uint32_t i = 0; i < part_count_; ++i) {
    if (parts_[i].is_failed) {
      bytes += parts_[i].key_count * substitute(parts_[i]).size();
    }
  }
  return bytes;
}

void RedisSplit::compose() {
  // Taken out of home_: what the parent's sink does may bring another split to its end.
  std::string text = std::exchange(home_.text_, std::string());
  text.assign(resp::LengthLine('*', key_count_).text());
  for (std::uint32_t i = 0; i < key_count_; ++i) {
    const Key& key = keys_[i];
    Part& part = parts_[key.part];
    if (part.is_failed) {
      text += substitute(part);
      continue;
    }
    for (std::size_t left = key.element_bytes; left != 0;) {
      const std::string_view run = part.bytes.front().substr(0, left);
      text += run;
      left -= run.size();
      part.bytes.consume(run.size());
    }
  }
  RedisSplits& home = home_;
  finish(text, ReplyCode::Value);  // This object is gone.
  home.text_ = std::move(text);
}

void RedisSplit::pass_on() {
  while (next_key_ < key_count_ && !is_parent_paused_ && !is_discarding_) {
    Key& key = keys_[next_key_];
    pass_element(key);
    if (key.element_bytes == 0) {
      ++next_key_;
    }
  }
  if (!is_parent_paused_) {
    finish({}, ReplyCode::Value);
  }
}

void RedisSplit::pass_element(Key& key) {
  Part& part = parts_[key.part];
  if (part.is_failed) {
    key.element_bytes = 0;
    pass(substitute(part));
    return;
  }
  while (key.element_bytes != 0 && !is_parent_paused_) {
    const std::string_view run = part.bytes.front().substr(0, key.element_bytes);
    key.element_bytes -= static_cast<std::uint32_t>(run.size());
    pass(run);
    part.bytes.consume(run.size());
  }
}

void RedisSplit::pass(std::string_view bytes) {
  const bool is_first = !std::exchange(has_passed_, true);
  const Flow flow = parent_.sink->on_reply(parent_, ReplyPart{.bytes = bytes,
                                                              .code = ReplyCode::Value,
                                                              .is_first = is_first,
                                                              .is_last = false,
                                                              .is_sure = true});
  is_parent_paused_ = flow == Flow::Pause;
}

void RedisSplit::finish(std::string_view bytes, ReplyCode code) {
  parent_.sink->on_reply(
      parent_, ReplyPart{.bytes = bytes, .code = code, .is_first = !has_passed_, .is_last = true});
  home_.release(*this);
}

void RedisSplit::resume(Call& /*call*/) {
  is_parent_paused_ = false;
  home_.loop_.defer(resume_task_);
}

void RedisSplit::discard(Call& /*call*/) {
  is_discarding_ = true;
  is_parent_paused_ = false;
  home_.loop_.defer(resume_task_);
}

}  // namespace kvferry::pool
