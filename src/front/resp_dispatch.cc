// From requests of a client of Redis to answers: who may ask, what is answered here, what goes to
// the target.
#include <array>
#include <chrono>
#include <vector>

#include "front/client_registry.h"
#include "front/resp_client.h"
#include "front/session.h"
#include "protocol/redis_commands/command_errors.h"
#include "protocol/redis_commands/command_table.h"
#include "protocol/redis_commands/request.h"
#include "protocol/resp/request_writer.h"

namespace kvferry::front {

using call::Call;
using redis::Command;
using redis::InMulti;
using redis::Routing;

namespace {

constexpr std::string_view kUnauthenticated = "NOAUTH Authentication required.";

/// UNWATCH is queued as others are, and has no effect there.
bool is_queued(const Command& command) {
  return command.in_multi == InMulti::Queued || command.in_multi == InMulti::NoEffect;
}

}  // namespace

/// Whether the request can be run as far as its name and its count tell; else `error` gets the
/// text.
bool RespClient::is_good(const redis::Resolution& found, Args args, std::string& error) const {
  error.clear();
  const bool is_unknown = found.state == redis::Resolution::State::UnknownCommand;
  if (is_unknown && (!options().passes_unknown || args.size() < 2)) {
    redis::append_unknown_command(args, error);
    return false;
  }
  return redis::check_count(found, args, static_cast<std::uint32_t>(args.size()), error);
}

/// Commands that touch everybody's data, or other clients, are for administrators.
bool RespClient::may_administer() const {
  return session_.service_.options_.allows_admin || is_local(session_.peer());
}

void RespClient::dispatch(Args args, std::string_view bytes) {
  is_silent_ = mute_ == Mute::On || mute_ == Mute::This;
  if (mute_ == Mute::Next) [[unlikely]] {
    mute_ = Mute::This;  // The command that said so is answered with nothing either.
    is_silent_ = true;
  }
  const redis::Resolution found = redis::resolve(args);
  const Command& command = *found.command;
  if (card_ != nullptr) {
    card_->note_command(command.id, steady_ms());
  }
  if (!is_known_ && (command.flags & redis::kNoAuth) == 0) [[unlikely]] {
    reject(command, kUnauthenticated);
  } else if (!is_good(found, args, session_.service_.resp_scratch_)) [[unlikely]] {
    reject(command, session_.service_.resp_scratch_);
  } else if (command.is_gated && !may_administer()) [[unlikely]] {
    reject(command, std::string("NOPERM this user has no permissions to run the '")
                        .append(command.name)
                        .append("' command"));
  } else {
    run(command, args, bytes);
  }
  if (mute_ == Mute::This) [[unlikely]] {
    mute_ = Mute::Off;
  }
}

/// A command that may be asked for.
void RespClient::run(const Command& command, Args args, std::string_view bytes) {
  if (transaction_ != nullptr && is_queued(command)) [[unlikely]] {
    queue(command, args, bytes);
    return;
  }
  if (transaction_ != nullptr && command.in_multi == InMulti::Refused) [[unlikely]] {
    reject(command, std::string("ERR kvferry: ")
                        .append(command.name)
                        .append(" is not allowed inside a transaction"));
    return;
  }
  const bool is_ours = command.routing == Routing::Local || command.routing == Routing::Session;
  if (is_ours) [[unlikely]] {
    const Local local = find_local(command);
    if (local == nullptr) {
      reject(command,
             std::string("ERR kvferry: '").append(command.name).append("' is not available here"));
      return;
    }
    session_.service_.stats_->resp.of(command.id).calls.add(1);
    std::string& text = session_.service_.resp_reply_;
    text.clear();
    resp::ReplyWriter reply(version_, text);
    (this->*local)(args, reply);
    if (!text.empty()) {
      answer(command, text);
    }
    return;
  }
  if (command.routing == Routing::Refused) [[unlikely]] {
    reject(command,
           std::string("ERR kvferry: '").append(command.name).append("' is refused by the proxy"));
    return;
  }
  send(command, args, bytes);
}

void RespClient::queue(const Command& command, Args args, std::string_view bytes) {
  static const Command* const kSelect = redis::find_command("select");
  std::string& scratch = session_.service_.resp_scratch_;
  if (bytes.empty()) {
    scratch.clear();
    resp::append_request(args, scratch);
    bytes = scratch;
  }
  const redis::Request request{.command = command,
                               .args = args,
                               .arg_count = static_cast<std::uint32_t>(args.size()),
                               .bytes = bytes,
                               .version = version_,
                               .database = database_};
  std::uint32_t database = 0;
  const bool is_select = &command == kSelect;
  std::string_view misfit = is_select ? read_database(args[1], database) : std::string_view();
  if (misfit.empty()) {
    misfit = session_.service_.redis_target_->join(request, transaction_->place());
  }
  if (!misfit.empty()) {
    reject(command, misfit);
    return;
  }
  if (!transaction_->add(command, static_cast<std::uint32_t>(args.size()), bytes)) {
    reject(command, "ERR kvferry: the transaction is larger than is kept here");
    return;
  }
  if (is_select) {
    transaction_->select(database);
  }
  note_queued();
  answer(command, "+QUEUED\r\n");
}

void RespClient::send(const Command& command, Args args, std::string_view bytes) {
  if (session_.service_.context_.budget.is_exhausted()) [[unlikely]] {
    session_.service_.stats_->memory_refusals.add(1);
    reject(command, "OVERLOAD kvferry: memory limit reached");
    return;
  }
  if (bytes.empty()) {
    std::string& scratch = session_.service_.resp_scratch_;
    scratch.clear();
    resp::append_request(args, scratch);
    bytes = scratch;
  }
  session_.service_.stats_->resp.of(command.id).calls.add(1);
  session_.service_.redis_target_->send(
      make_call(command), redis::Request{.command = command,
                                         .args = args,
                                         .arg_count = static_cast<std::uint32_t>(args.size()),
                                         .bytes = bytes,
                                         .version = version_,
                                         .database = database_});
}

Call& RespClient::make_call(const Command& command) {
  Call& call = session_.begin_call();
  call.sink = this;
  call.redis_command = command.id;
  call.quiet = is_silent_ ? call::Quiet::All : call::Quiet::No;
  return call;
}

void RespClient::reject(const Command& command, std::string_view error) {
  session_.service_.stats_->resp.of(command.id).rejected.add(1);
  if (transaction_ != nullptr) {
    transaction_->fail();
  }
  std::string& text = session_.service_.resp_reply_;
  text.clear();
  resp::ReplyWriter(version_, text).error(error);
  answer(command, text);
}

void RespClient::answer(const Command& /*command*/, std::string_view reply) {
  if (!is_silent_) {
    session_.answer_with(reply, call::redis_reply_code(reply[0], reply[1]));
  }
}

RespClient::Local RespClient::find_local(const Command& command) {
  struct Row {
    std::string_view name;
    Local local;
  };
  using C = RespClient;
  static constexpr Row kRows[] = {
      {"acl|cat", &C::acl_categories},
      {"acl|whoami", &C::acl_who_am_i},
      {"asking", &C::no_cluster},
      {"auth", &C::authenticate},
      {"client|getname", &C::client_get_name},
      {"client|getredir", &C::client_get_redirection},
      {"client|id", &C::client_id},
      {"client|info", &C::client_info},
      {"client|kill", &C::client_kill},
      {"client|list", &C::client_list},
      {"client|no-evict", &C::client_switch},
      {"client|no-touch", &C::client_switch},
      {"client|reply", &C::client_reply},
      {"client|setinfo", &C::client_set_info},
      {"client|setname", &C::client_set_name},
      {"client|unblock", &C::client_unblock},
      {"cluster|info", &C::cluster_info},
      {"cluster|keyslot", &C::cluster_key_slot},
      {"command", &C::command_info},
      {"command|count", &C::command_info},
      {"command|docs", &C::command_info},
      {"command|getkeys", &C::command_info},
      {"command|getkeysandflags", &C::command_info},
      {"command|help", &C::command_info},
      {"command|info", &C::command_info},
      {"command|list", &C::command_info},
      {"config|get", &C::config_get},
      {"config|resetstat", &C::config_reset},
      {"config|rewrite", &C::config_rewrite},
      {"config|set", &C::config_set},
      {"discard", &C::discard},
      {"echo", &C::echo},
      {"exec", &C::exec},
      {"hello", &C::hello},
      {"info", &C::info},
      {"multi", &C::multi},
      {"ping", &C::ping},
      {"quit", &C::quit},
      {"readonly", &C::accept},
      {"readwrite", &C::accept},
      {"reset", &C::reset},
      {"role", &C::role},
      {"select", &C::select},
      {"time", &C::time},
  };
  static const std::vector<Local> kById = [] {
    std::vector<Local> by_id(redis::command_count() + 1, nullptr);
    for (const Row& row : kRows) {
      by_id[redis::find_full_name(row.name)->id] = row.local;
    }
    return by_id;
  }();
  return kById[command.id];
}

}  // namespace kvferry::front
