// Requests of a client of Redis out of its bytes, and replies on their way back to it.
#include "front/resp_client.h"

#include <algorithm>
#include <sys/socket.h>
#include <utility>

#include "front/client_registry.h"
#include "front/session.h"
#include "protocol/redis_commands/command_errors.h"
#include "protocol/redis_commands/command_table.h"

namespace kvferry::front {

using call::Call;
using call::Flow;
using memcache::ReplyCode;

namespace {

constexpr std::size_t kLineEndBytes = 2;
constexpr std::string_view kTooLargeError = "ERR kvferry: the request is larger than is kept here";

/// "host:port" of this end of the connection on `fd`; empty when that cannot be told.
std::string local_address(int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) {
    return {};
  }
  return net::Address(reinterpret_cast<const sockaddr*>(&storage), size).to_string();
}

}  // namespace

RespClient::RespClient(Session& session)
    : session_(session),
      parser_(session.service_.options_.resp.parser),
      is_known_(options().credentials == nullptr) {
  parser_.set_client_known(is_known_);
  const ServiceContext& context = session_.service_.context_;
  if (context.clients != nullptr) {
    card_ = context.clients->enter(context.loop.mailbox(), steady_ms());
    card_->set_client(this);
    card_->edit_texts([this](ClientCard::Texts& texts) {
      texts.address = peer_text(session_.peer());
      texts.local_address = local_address(session_.stream_->fd());
    });
  }
}

RespClient::~RespClient() {
  if (card_ != nullptr) {
    card_->set_client(nullptr);
    session_.service_.context_.clients->leave(*card_);
  }
}

const RespOptions& RespClient::options() const {
  return session_.service_.options_.resp;
}

std::int64_t RespClient::steady_ms() const {
  const auto now = session_.service_.context_.loop.now().time_since_epoch();
  return std::chrono::duration_cast<base::Millis>(now).count();
}

void RespClient::kill() {
  session_.abort("normal");
}

std::size_t RespClient::consume(std::string_view bytes) {
  if (streamed_left_ != 0) [[unlikely]] {
    return take_streamed(bytes);
  }
  const auto parsed = parser_.parse(bytes);
  if (parsed.is_need_more()) {
    if (bytes.size() > options().gather_bytes_max && intake_ == Intake::Whole) [[unlikely]] {
      // Its arguments are short, or were to be waited for; there are more of them than are kept.
      parser_.rewind();
      refusal_ = kTooLargeError;
      intake_ = Intake::Discard;
      return consume(bytes);
    }
    return 0;
  }
  if (parsed.is_failed()) {
    return on_parse_failure(parsed.error(), bytes.size());
  }
  const resp::RequestRun& run = parsed.value();
  if (intake_ != Intake::Whole) [[unlikely]] {
    return go_on(run, bytes);
  }
  if (run.streamed_bytes != 0) [[unlikely]] {
    return begin_long_request(run, bytes);
  }
  if (!run.args.empty()) [[likely]] {
    ++session_.turn_requests_;
    dispatch(run.args, run.is_inline ? std::string_view{} : bytes.substr(0, run.size_bytes));
    session_.hold_if_full();
  }
  return run.size_bytes;
}

/// A request whose first long argument has been announced.
std::size_t RespClient::begin_long_request(const resp::RequestRun& run, std::string_view bytes) {
  if (may_stream(run)) {
    if (!session_.queue_.empty()) {
      // Its bytes go another way than those before it.
      parser_.rewind();
      session_.hold(Session::kBarrier);
      return 0;
    }
    return begin_stream(run, bytes);
  }
  if (run.size_bytes + run.streamed_bytes > options().gather_bytes_max) {
    return begin_discard(run, kTooLargeError);
  }
  if (session_.service_.context_.budget.is_exhausted()) {
    session_.service_.stats_->memory_refusals.add(1);
    return begin_discard(run, "OVERLOAD kvferry: memory limit reached");
  }
  parser_.gather();
  return consume(bytes);
}

/// Whether the target needs no more of the request than what is there.
bool RespClient::may_stream(const resp::RequestRun& run) const {
  if (!options().streams_values || !is_known_ || transaction_ != nullptr || run.args.size() < 2 ||
      mute_ != Mute::Off || session_.service_.context_.budget.is_exhausted()) {
    return false;
  }
  const redis::Resolution found = redis::resolve(run.args, run.arg_count);
  return found.state == redis::Resolution::State::Known &&
         found.command->routing == redis::Routing::SingleKey && found.command->first_key > 0 &&
         static_cast<std::size_t>(found.command->first_key) < run.args.size() &&
         redis::has_good_count(*found.command, run.arg_count);
}

std::size_t RespClient::begin_stream(const resp::RequestRun& run, std::string_view bytes) {
  intake_ = Intake::Stream;
  streamed_left_ = run.streamed_bytes + kLineEndBytes;
  is_last_run_ = run.is_last();
  const redis::Command& command = *redis::resolve(run.args, run.arg_count).command;
  session_.service_.stats_->resp.of(command.id).calls.add(1);
  Call& call = make_call(command);
  call.body_source = &session_;
  session_.body_call_ = &call;
  const std::size_t size_bytes = run.size_bytes;
  session_.service_.redis_target_->send(call, redis::Request{.command = command,
                                                             .args = run.args,
                                                             .arg_count = run.arg_count,
                                                             .bytes = bytes.substr(0, size_bytes),
                                                             .version = version_,
                                                             .database = database_});
  session_.on_body_begun();
  return size_bytes;
}

std::size_t RespClient::begin_discard(const resp::RequestRun& run, std::string_view refusal) {
  intake_ = Intake::Discard;
  refusal_ = refusal;
  streamed_left_ = run.streamed_bytes + kLineEndBytes;
  is_last_run_ = run.is_last();
  return run.size_bytes;
}

/// Another run of a request of which a part was taken already.
std::size_t RespClient::go_on(const resp::RequestRun& run, std::string_view bytes) {
  const std::size_t size_bytes = run.size_bytes;
  const bool is_whole_end = run.is_last() && run.streamed_bytes == 0;
  is_last_run_ = run.is_last();
  streamed_left_ = run.streamed_bytes == 0 ? 0 : run.streamed_bytes + kLineEndBytes;
  if (intake_ == Intake::Stream) {
    pass_piece(bytes.substr(0, size_bytes), is_whole_end);
  } else if (is_whole_end) {
    end_discard();
  }
  return size_bytes;
}

std::size_t RespClient::take_streamed(std::string_view bytes) {
  const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(streamed_left_, bytes.size()));
  streamed_left_ -= part;
  const bool is_end = streamed_left_ == 0 && is_last_run_;
  if (intake_ == Intake::Stream) {
    pass_piece(bytes.substr(0, part), is_end);
  } else if (is_end) {
    end_discard();
  }
  return part;
}

void RespClient::pass_piece(std::string_view bytes, bool is_last) {
  Call& call = *session_.body_call_;
  if (is_last) {
    intake_ = Intake::Whole;
    session_.forget_body();
    session_.hold(Session::kBarrier);
  }
  const Flow flow = call.body_sink->on_body(call, bytes, is_last);
  session_.on_body_taken(flow, bytes.size());
}

void RespClient::drop_rest() {
  if (intake_ == Intake::Stream) {
    intake_ = Intake::Discard;
    refusal_.clear();
  }
}

void RespClient::end_discard() {
  intake_ = Intake::Whole;
  if (!refusal_.empty()) {
    ++session_.turn_requests_;
    reject(redis::unknown_command(), std::exchange(refusal_, {}));
  }
}

/// Nobody knows where the next request begins: the client is told and left.
std::size_t RespClient::on_parse_failure(const resp::ParseFailure& failure,
                                         std::size_t size_bytes) {
  session_.service_.stats_->parse_errors.add(1);
  if (intake_ == Intake::Stream) {
    session_.end();  // The taker of the body learns that the rest does not come.
    return size_bytes;
  }
  std::string line;
  resp::append_error_line(failure, line);
  if (!line.empty()) {
    session_.answer_with(line, ReplyCode::ClientError);
  }
  session_.phase_ = Session::Phase::Ending;
  return size_bytes;
}

Flow RespClient::on_reply(Call& call, const call::ReplyPart& part) {
  if (part.is_first) {
    call.is_hidden = call.quiet != call::Quiet::No;
  }
  if (part.is_last) {
    RespCommandStats& stats = session_.service_.stats_->resp.of(call.redis_command);
    const auto taken = session_.service_.context_.loop.now() - call.started;
    stats.microseconds.add(
        static_cast<std::uint64_t>(std::chrono::duration_cast<base::Micros>(taken).count()));
    if (memcache::is_error(part.code)) {
      stats.failed.add(1);
    }
    session_.service_.stats_->replies[static_cast<std::size_t>(part.code)].add(1);
    if (selected_) [[unlikely]] {
      take_selected(call, part.code);
    }
  }
  return session_.take_reply(call, part);
}

void RespClient::prefetch(const Call& call) const {
  session_.prefetch(call);
}

void RespClient::on_blocked(Call& call) {
  session_.on_blocked(call);
}

}  // namespace kvferry::front
