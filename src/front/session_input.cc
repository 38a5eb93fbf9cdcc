// From bytes to calls: the input side of a session.
#include <algorithm>
#include <array>
#include <utility>

#include "front/binary_refusal.h"
#include "front/resp_client.h"
#include "front/session.h"
#include "protocol/memcache/base64.h"
#include "protocol/memcache/meta_flags.h"
#include "protocol/memcache/storage_args.h"

namespace kvferry::front {

using call::Call;
using call::Flow;
using memcache::ReplyCode;

namespace {

constexpr std::string_view kLateBodyLine =
    "SERVER_ERROR kvferry: the rest of the value did not come in time\r\n";

/// What a server would say against the line of this meta command.
memcache::MetaError find_meta_error(const memcache::Request& request) {
  const memcache::MetaError error = memcache::parse_meta_flags(request).error;
  if (error != memcache::MetaError::None || !request.base64_key) {
    return error;
  }
  std::array<char, memcache::kDecodedKeyBytesMax> decoded{};
  return memcache::decode_base64_key(request.key, decoded) ? memcache::MetaError::None
                                                           : memcache::MetaError::BadKey;
}

}  // namespace

void Session::on_data(std::string_view bytes) {
  service_.stats_->bytes_received.add(bytes.size());
  if (phase_ != Phase::Open) {
    return;
  }
  last_active_ = service_.context_.loop.now();
  turn_requests_ = 0;
  is_parsing_ = true;
  carry_.feed(service_.context_.loop.blocks(), bytes,
              [this](std::string_view view) { return consume(view); });
  is_parsing_ = false;
  after_input();
}

std::size_t Session::consume(std::string_view bytes) {
  std::size_t taken = 0;
  while (taken < bytes.size()) {
    if (phase_ != Phase::Open) {
      return bytes.size();
    }
    if (holds_ != 0) {
      break;
    }
    const std::size_t part = consume_one(bytes.substr(taken));
    if (part == 0) {
      break;
    }
    taken += part;
  }
  return taken;
}

/// Takes one request, or a piece of a body, from the front of `bytes`; 0 when it cannot now.
std::size_t Session::consume_one(std::string_view bytes) {
  if (skip_left_ != 0) [[unlikely]] {
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(skip_left_, bytes.size()));
    skip_left_ -= part;
    return part;
  }
  if (body_call_ != nullptr && wire_ != Wire::Resp) [[unlikely]] {
    return pass_body(bytes);
  }
  if (turn_requests_ >= service_.options_.requests_per_turn) {
    hold(kTurn);
    service_.context_.loop.defer(task_);
    return 0;
  }
  if (wire_ == Wire::Unknown && !begin_wire(bytes.front())) [[unlikely]] {
    return bytes.size();
  }
  switch (wire_) {
    case Wire::Binary:
      return consume_packet(bytes);
    case Wire::Resp:
      return resp_->consume(bytes);
    default:
      return consume_line(bytes);
  }
}

/// Decides by its first byte what a client speaks. False: nothing that is served here.
bool Session::begin_wire(char first) {
  const bool is_binary = first == memcache_binary::kRequestMagic;
  if (is_binary && service_.options_.serves_binary) {
    wire_ = Wire::Binary;
    return true;
  }
  if (const RespOptions& resp = service_.options_.resp;
      resp.is_served && !is_binary && (first == '*' || resp.is_only)) {
    wire_ = Wire::Resp;
    resp_ = std::make_unique<RespClient>(*this);
    return true;
  }
  wire_ = Wire::Text;
  if (!service_.options_.serves_text && !is_binary) {
    phase_ = Phase::Ending;
    return false;
  }
  return true;
}

std::size_t Session::consume_line(std::string_view bytes) {
  const auto parsed = parser_.parse(bytes);
  if (parsed.is_need_more()) {
    return 0;
  }
  if (parsed.is_failed()) {
    return on_parse_failure(parsed.error(), bytes);
  }
  ++turn_requests_;
  const memcache::Request& request = parsed.value();
  return dispatch(request) ? request.size_bytes : 0;
}

std::size_t Session::pass_body(std::string_view bytes) {
  const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(body_left_, bytes.size()));
  body_left_ -= part;
  Call& call = *body_call_;
  if (wire_ == Wire::Binary) {
    pass_value_of_packet(call, bytes.substr(0, part));
    return part;
  }
  if (body_left_ == 0) {
    // Requests behind it wait for its reply: its body went another way than they would.
    forget_body();
    hold(kBarrier);
  }
  const Flow flow = call.body_sink->on_body(call, bytes.substr(0, part), body_left_ == 0);
  on_body_taken(flow, part);
  return part;
}

/// A piece of a body, which is not the last one, has been handed over.
void Session::on_body_taken(Flow flow, std::size_t part_bytes) {
  if (body_call_ == nullptr) {
    return;  // Answered, or that was the last piece.
  }
  if (flow == Flow::Pause) {
    hold(kBody);
    body_timer_->cancel();  // From here on it is the taker's time.
  } else {
    await_body_after(part_bytes);
  }
}

/// Gives the client its whole time for the next bytes of the body.
void Session::await_body() {
  if (body_timer_ == nullptr) {
    body_timer_ =
        std::make_unique<net::Timer>(net::Timer::Callback::to<&Session::on_body_late>(this));
  }
  body_progress_bytes_ = 0;
  net::Loop& loop = service_.context_.loop;
  loop.timers().arm(*body_timer_, loop.now() + service_.options_.body_timeout);
}

void Session::await_body_after(std::size_t part_bytes) {
  body_progress_bytes_ += part_bytes;
  if (body_progress_bytes_ >= kBodyProgressBytes) {
    await_body();
  }
}

/// Nobody takes the rest of the body: it is read and dropped.
void Session::drop_rest_of_body() {
  forget_body();
  skip_left_ = std::exchange(body_left_, 0);
  if (resp_ != nullptr) {
    resp_->drop_rest();
  }
}

Call* Session::forget_body() {
  if (body_timer_ != nullptr) {
    body_timer_->cancel();
  }
  return std::exchange(body_call_, nullptr);
}

/// The body holds a connection to a backend that others wait for. Its rest would have to be read
/// before anything else of this client, so the session ends too.
void Session::on_body_late() {
  service_.stats_->bodies_stalled.add(1);
  Call& call = *body_call_;
  if (wire_ == Wire::Binary && !call.is_passed) {
    tell_of_late_packet();
  } else if (call.quiet != call::Quiet::All && !call.is_passed) {
    write(wire_ == Wire::Resp ? RespClient::kLateBodyLine : kLateBodyLine);
  }
  call.quiet = call::Quiet::All;  // What its taker says about the lost body is not news.
  end();
}

std::size_t Session::on_parse_failure(const memcache::ParseFailure& failure,
                                      std::string_view bytes) {
  using memcache::RequestError;
  skip_left_ = failure.skip_bytes;
  if (failure.error == RequestError::None) {
    return failure.size_bytes;  // The rest of a line that was refused before.
  }
  service_.stats_->parse_errors.add(1);
  // What a set could not replace must not be found any more; other commands leave it alone.
  const bool is_set = failure.command == memcache::Command::Set ||  //
                      failure.command == memcache::Command::Ms;
  if (failure.error == RequestError::TooLarge && is_set && service_.forget_ &&
      !failure.key.empty()) {
    service_.forget_(failure.key);
  }
  if (failure.error == RequestError::NotText && bytes.front() == memcache_binary::kRequestMagic) {
    service_.context_.commands.on_binary_client(stream_->fd());
    answer_with(compose_binary_refusal(bytes), ReplyCode::ClientError);
  }
  const bool is_silent = failure.noreply && service_.options_.words == memcache::ErrorWords::Store;
  const std::string_view line = memcache::error_line(failure.error, service_.options_.words);
  if (!is_silent && !line.empty()) {
    answer_with(line, failure.error == RequestError::TooLarge ? ReplyCode::ServerError
                                                              : ReplyCode::ClientError);
  }
  if (memcache::closes_connection(failure.error)) {
    phase_ = Phase::Ending;
  }
  hold_if_full();
  return failure.size_bytes;
}

/// A call of this client, the last one of its queue.
Call& Session::begin_call() {
  Call& call = service_.context_.calls.acquire();
  call.sink = this;
  call.started = service_.context_.loop.now();
  call.lane = lane_;
  call.client_fd = stream_->fd();
  queue_.push_back(call);
  ++inflight_;
  service_.stats_->inflight.add(1);
  return call;
}

Call& Session::make_call(const memcache::Request& request) {
  Call& call = begin_call();
  call.command = request.command;
  call.reply_kind = memcache::reply_kind_of(request.command);
  if (request.noreply) {
    call.quiet = call::Quiet::All;
  } else if (request.quiet) {
    call.quiet =
        request.command == memcache::Command::Mg ? call::Quiet::Miss : call::Quiet::Success;
  }
  return call;
}

bool Session::dispatch(const memcache::Request& request) {
  if (is_locked_) [[unlikely]] {
    authenticate(request);
    return true;
  }
  if (!request.has_complete_value) [[unlikely]] {
    return dispatch_streamed(request);
  }
  service_.stats_->requests[static_cast<std::size_t>(request.command)].add(1);
  if (request.key_count == 0 &&
      !service_.options_.hooked[static_cast<std::size_t>(request.command)]) [[unlikely]] {
    answer_locally(request);
  } else if (service_.context_.budget.is_exhausted()) [[unlikely]] {
    refuse_memory(request);
  } else if (is_sound(request)) [[likely]] {
    Call& call = make_call(request);
    service_.target_->send(call, request);
  }
  hold_if_full();
  return true;
}

void Session::hold_if_full() {
  if (inflight_ >= service_.options_.inflight_max) {
    hold(kInflight);
  }
}

bool Session::dispatch_streamed(const memcache::Request& request) {
  if (!queue_.empty()) {
    hold(kBarrier);
    return false;
  }
  service_.stats_->requests[static_cast<std::size_t>(request.command)].add(1);
  if (service_.context_.budget.is_exhausted()) {
    refuse_memory(request);
    return true;
  }
  if (!is_sound(request)) {
    skip_left_ = request.value_bytes + 2;
    return true;
  }
  Call& call = make_call(request);
  send_streamed(call, request, request.value_bytes + memcache::kValueEndBytes);
  return true;
}

/// Sends the head of `request`, whose body is the next `body_bytes` of the client.
void Session::send_streamed(Call& call, const memcache::Request& request,
                            std::uint64_t body_bytes) {
  call.body_source = this;
  body_call_ = &call;
  body_left_ = body_bytes;
  service_.target_->send(call, request);
  on_body_begun();
}

/// The begin of a request was sent whose rest is still to come.
void Session::on_body_begun() {
  if (body_call_ == nullptr) {
    return;
  }
  if (body_call_->body_waits) {
    hold(kBody);
  } else {
    await_body();
  }
}

/// Whether a line that announces a value may be passed on. A server that refuses the line reads the
/// value as commands, whose replies would answer somebody else's requests on the same connection;
/// so what it would refuse is refused here. The store judges for itself.
bool Session::is_sound(const memcache::Request& request) {
  if (service_.options_.words == memcache::ErrorWords::Store || !service_.options_.judges_lines) {
    return true;
  }
  // memcached reads a line up to its first NUL byte only: it might miss the value, or see a noreply
  // that we do not.
  const bool has_nul = request.line.find('\0') != std::string_view::npos;
  if (!has_nul && !memcache::has_value(request.command)) {
    return true;
  }
  std::string_view line;
  if (has_nul) {
    line = memcache::args_error_line(memcache::ArgsError::BadLine);
  } else if (request.command == memcache::Command::Ms) {
    const memcache::MetaError error = find_meta_error(request);
    line =
        error == memcache::MetaError::None ? std::string_view{} : memcache::meta_error_line(error);
  } else {
    const memcache::ArgsError error = memcache::parse_storage_args(request).error;
    const bool is_good =
        error == memcache::ArgsError::None && !memcache::has_surplus_words(request);
    line = is_good ? std::string_view{} : memcache::args_error_line(memcache::ArgsError::BadLine);
  }
  if (line.empty()) {
    return true;
  }
  service_.stats_->parse_errors.add(1);
  answer_with(line, ReplyCode::ClientError);
  return false;
}

void Session::refuse_memory(const memcache::Request& request) {
  service_.stats_->memory_refusals.add(1);
  if (!request.has_complete_value) {
    skip_left_ = request.value_bytes + 2;
  }
  if (!request.noreply) {
    answer_with("SERVER_ERROR out of memory\r\n", ReplyCode::ServerError);
  }
}

void Session::answer_with(std::string_view line, ReplyCode code) {
  service_.stats_->replies[static_cast<std::size_t>(code)].add(1);
  if (queue_.empty()) {
    write(line);
    return;
  }
  Call& call = service_.context_.calls.acquire();
  call.stash.append(service_.context_.loop.blocks(), line);
  call.is_done = true;
  queue_.push_back(call);
  ++inflight_;
  service_.stats_->inflight.add(1);
}

void Session::resume_body(Call& call) {
  if (&call == body_call_) {
    await_body();
  }
  unhold(kBody);
}

void Session::discard_body(Call& call) {
  if (body_call_ == &call) {
    drop_rest_of_body();
    hold(kBarrier);
    unhold(kBody);
  }
}

}  // namespace kvferry::front
