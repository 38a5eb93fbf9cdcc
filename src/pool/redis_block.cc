#include "pool/redis_block.h"

#include <algorithm>
#include <new>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "pool/merge_text.h"
#include "protocol/redis_commands/command_table.h"
#include "protocol/resp/integer.h"
#include "protocol/resp/request_parser.h"
#include "protocol/resp/request_writer.h"

namespace kvferry::pool {

using call::Call;
using call::Flow;
using call::ReplyPart;
using redis::Block;
using redis::QueuedCommand;

namespace {

constexpr std::string_view kMulti = "*1\r\n$5\r\nMULTI\r\n";
constexpr std::string_view kExec = "*1\r\n$4\r\nEXEC\r\n";
constexpr std::string_view kQueued = "+QUEUED\r\n";

bool is_select(const QueuedCommand& queued) {
  static const redis::Command* const kSelect = redis::find_command("select");
  return queued.command == kSelect;
}

std::string select_request(std::uint32_t database) {
  const std::string number = std::to_string(database);
  const std::string_view words[] = {"SELECT", number};
  std::string bytes;
  resp::append_request(words, bytes);
  return bytes;
}

/// `bytes` are those of a SELECT whose database the session has found to be one that there is; the
/// same one as the backend has it.
std::string shifted_select(std::string_view bytes, std::uint32_t db_base) {
  resp::RequestParser parser({});
  const auto parsed = parser.parse(bytes);
  std::int64_t database = 0;
  KVF_CHECK(parsed.is_done() && resp::read_integer(parsed.value().args[1], database));
  return select_request(db_base + static_cast<std::uint32_t>(database));
}

/// "-<begin><text of reply><end>\r\n", of one line and not too long.
std::string error_line(std::string_view begin, std::string_view reply, std::string_view end) {
  std::string text(error_text(reply));
  std::replace_if(
      text.begin(), text.end(), [](char byte) { return byte == '\r' || byte == '\n'; }, ' ');
  const std::size_t fixed_bytes = 1 + begin.size() + end.size() + 2;
  text.resize(std::min(text.size(), kFailureLineBytesMax - fixed_bytes));
  return std::string("-").append(begin).append(text).append(end).append("\r\n");
}

}  // namespace

void RedisBlock::start(const PoolContext& context, Backend& lane, Call& parent,
                       const Block& block) {
  Failure why;
  Link* const link = lane.admit(parent, why);
  if (link == nullptr) {
    lane.refuse(parent, why);
    return;
  }
  Room room;
  char* const memory = acquire_room(context.loop.blocks(), sizeof(RedisBlock), room);
  auto& made = *new (memory) RedisBlock(context, lane, *link, parent);
  made.room_ = room;
  parent.source = &made;
  const bool has_select = std::ranges::any_of(block.commands, is_select);
  made.write(block, has_select);
  // One for each command, MULTI and EXEC.
  made.exec_left_ = has_select ? 2 : 1;
  made.send(static_cast<std::uint32_t>(block.commands.size()) + 1 + made.exec_left_);
}

void RedisBlock::write(const Block& block, bool has_select) {
  const auto put = [this](std::string_view bytes) {
    lane_.stats().bytes_sent.add(bytes.size());
    link_.write(bytes);
  };
  put(kMulti);
  if (!has_select) [[likely]] {
    put(block.bytes);
    put(kExec);
    return;
  }
  const std::uint32_t db_base = lane_.options().redis.db_base;
  for (const QueuedCommand& queued : block.commands) {
    const std::string_view bytes = block.bytes.substr(queued.begin, queued.size_bytes);
    if (is_select(queued)) {
      put(shifted_select(bytes, db_base));
    } else {
      put(bytes);
    }
  }
  put(kExec);
  put(select_request(db_base + block.database));
}

void RedisBlock::send(std::uint32_t replies) {
  Call& call = context_.calls.acquire();
  call_ = &call;
  call.sink = this;
  call.started = parent_->started;
  call.lane = parent_->lane;
  call.client_fd = parent_->client_fd;
  call.reply_count = left_ = total_ = replies;
  link_.commit(call);
}

Flow RedisBlock::on_reply(Call& call, const ReplyPart& part) {
  const std::uint32_t left = left_;
  const bool is_end = part.is_last || call.reply_count != left;
  left_ = part.is_last ? 0 : call.reply_count;
  Flow flow = Flow::Continue;
  if (parent_ != nullptr && (left == exec_left_ || part.is_last)) {
    flow = pass_on(part, is_end);
  } else if (left > exec_left_) {
    note_queued(left == total_, part);
  }
  if (!part.is_last) {
    return flow;
  }
  context_.calls.release(call);
  const bool is_misplaced = left == 1 && exec_left_ == 2 && memcache::is_error(part.code);
  Link& link = link_;
  leave();
  if (is_misplaced && link.phase() == Link::Phase::Up) {
    link.shut(FailureKind::BadReply);  // It is in a database that it is not to be in.
  }
  return flow;
}

void RedisBlock::note_queued(bool is_multi, const ReplyPart& part) {
  if (!part.is_first || !refusal_.empty()) {
    return;
  }
  if (is_multi && memcache::is_error(part.code)) {
    // What followed was no transaction to the server.
    refusal_ = error_line("ERR kvferry: the backend refused MULTI (", part.bytes,
                          "); the commands may have run");
  } else if (!is_multi && part.bytes != kQueued) {
    refusal_ = error_line("EXECABORT Transaction discarded because of: ", part.bytes, {});
  }
}

/// A part of EXEC's reply, or the failure in its place.
Flow RedisBlock::pass_on(const ReplyPart& part, bool is_last) {
  if (part.is_first) {
    is_replaced_ = !refusal_.empty() && memcache::is_error(part.code);
  }
  if (!is_last && (is_replaced_ || is_discarding_)) {
    return Flow::Continue;
  }
  Call& parent = *parent_;
  ReplyPart passed = part;
  passed.is_first = !std::exchange(is_begun_, true);
  passed.is_last = is_last;
  if (is_discarding_) {
    passed.bytes = {};
  } else if (is_replaced_) {
    passed = ReplyPart{.bytes = refusal_,
                       .code = memcache::ReplyCode::ServerError,
                       .is_first = true,
                       .is_last = true};
  }
  if (is_last) {
    parent_ = nullptr;
  }
  return parent.sink->on_reply(parent, passed);
}

void RedisBlock::on_blocked(Call& /*call*/) {
  if (parent_ != nullptr) {
    parent_->sink->on_blocked(*parent_);
  }
}

void RedisBlock::resume(Call& /*call*/) {
  call_->source->resume(*call_);
}

void RedisBlock::discard(Call& call) {
  // Not the link's business: replies that are not the parent's may follow.
  is_discarding_ = true;
  resume(call);
}

void RedisBlock::leave() {
  const Room room = room_;
  base::BlockPool& blocks = context_.loop.blocks();
  this->~RedisBlock();
  release_room(blocks, room, this);
}

}  // namespace kvferry::pool
