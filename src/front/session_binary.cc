// A session whose client speaks the binary protocol: from packets to the calls of text requests,
// and the answers to what needs no call. Replies of calls are made by BinaryReply.
#include "front/session.h"
#include "protocol/memcache_binary/meta_request.h"

namespace kvferry::front {

using call::Call;
using call::Flow;
using memcache::Command;
using memcache::ReplyCode;
using memcache_binary::Opcode;
using memcache_binary::RequestError;
using memcache_binary::Shape;
using memcache_binary::Status;

namespace {

constexpr std::string_view kPlain = "PLAIN";
constexpr std::string_view kAuthenticated = "Authenticated";
constexpr std::string_view kValueEnd = "\r\n";
constexpr std::string_view kLateBodyText = "kvferry: the rest of the value did not come in time";
constexpr std::string_view kStat = "STAT ";
/// The name that memcached gives to the table of `stats detail dump`.
constexpr std::string_view kDetailed = "detailed";

/// The code that answers of ours are counted under.
ReplyCode code_of(Status status) {
  switch (status) {
    case Status::Ok:
      return ReplyCode::Ok;
    case Status::UnknownCommand:
      return ReplyCode::Error;
    case Status::OutOfMemory:
    case Status::TooLarge:
    case Status::InternalError:
      return ReplyCode::ServerError;
    default:
      return ReplyCode::ClientError;
  }
}

/// The command that a packet without a call is counted as.
Command command_of(Opcode plain) {
  switch (plain) {
    case Opcode::Noop:
      return Command::Mn;
    case Opcode::Version:
      return Command::Version;
    case Opcode::Quit:
      return Command::Quit;
    case Opcode::Stat:
      return Command::Stats;
    case Opcode::Verbosity:
      return Command::Verbosity;
    default:
      return Command::Unknown;
  }
}

call::Quiet quiet_of(const memcache::Request& request) {
  switch (request.command) {
    case Command::Mg:
      return call::Quiet::Miss;
    case Command::FlushAll:
      return call::Quiet::Good;
    default:
      return call::Quiet::Success;
  }
}

/// "user password", as Credentials wants it, of what a client sends for PLAIN (RFC 4616: an
/// identity that does not matter here, a name, a password, with NUL bytes between). Empty when it
/// is no such thing.
std::string credentials_of(std::string_view value) {
  const std::size_t name_at = value.find('\0') + 1;
  if (name_at == 0) {
    return {};
  }
  std::string words(value.substr(name_at));
  const std::size_t password_at = words.find('\0');
  if (password_at == std::string::npos) {
    return {};
  }
  words[password_at] = ' ';
  return words;
}

void add_stat(std::string& out, const memcache_binary::Request& packet, std::string_view key,
              std::string_view value) {
  out += memcache_binary::view_of(memcache_binary::compose_header({.opcode = packet.opcode,
                                                                   .opaque = packet.opaque,
                                                                   .key_bytes = key.size(),
                                                                   .value_bytes = value.size()}));
  out.append(key).append(value);
}

/// Makes a packet of each line of a reply to `stats`, and the empty one that ends them.
std::string compose_stats(const memcache_binary::Request& packet, std::string_view reply) {
  std::string out;
  for (std::string_view rest = reply; rest.starts_with(kStat);) {
    std::string_view line = rest.substr(0, rest.find(kValueEnd));
    rest.remove_prefix(std::min(rest.size(), line.size() + kValueEnd.size()));
    line.remove_prefix(kStat.size());
    const std::size_t blank = std::min(line.find(' '), line.size());
    add_stat(out, packet, line.substr(0, blank), line.substr(std::min(line.size(), blank + 1)));
  }
  if (reply.starts_with("PREFIX")) {
    add_stat(out, packet, kDetailed, reply);
  }
  add_stat(out, packet, {}, {});
  return out;
}

}  // namespace

std::size_t Session::consume_packet(std::string_view bytes) {
  const auto parsed = memcache_binary::parse_request(bytes, service_.options_.parser);
  if (parsed.is_need_more()) {
    return 0;
  }
  if (parsed.is_failed()) {
    return on_packet_failure(parsed.error());
  }
  const memcache_binary::Request& packet = parsed.value();
  if (!dispatch_packet(packet)) {
    return 0;
  }
  ++turn_requests_;
  hold_if_full();
  return packet.size_bytes;
}

std::size_t Session::on_packet_failure(const memcache_binary::ParseFailure& failure) {
  service_.stats_->parse_errors.add(1);
  if (failure.error == RequestError::NoRequest) {
    phase_ = Phase::Ending;
    return failure.size_bytes;
  }
  const memcache_binary::Request packet{.opcode = failure.opcode,
                                        .order = memcache_binary::order_of(failure.opcode),
                                        .opaque = failure.opaque};
  if (is_locked_) {
    refuse_packet(packet, Status::AuthError);
    phase_ = Phase::Ending;
    return failure.size_bytes;
  }
  skip_left_ = failure.skip_bytes;
  if (failure.error == RequestError::TooLarge && packet.order.plain == Opcode::Set &&
      service_.forget_) {
    service_.forget_(failure.key);
  }
  refuse_packet(packet, memcache_binary::status_of(failure.error));
  if (memcache_binary::closes_connection(failure.error)) {
    phase_ = Phase::Ending;
  }
  hold_if_full();
  return failure.size_bytes;
}

/// False when the packet must wait: nothing of it was taken.
bool Session::dispatch_packet(const memcache_binary::Request& packet) {
  if (is_locked_ && !may_pass_locked(packet)) [[unlikely]] {
    refuse_packet(packet, Status::AuthError);
    phase_ = Phase::Ending;
    return true;
  }
  switch (packet.order.shape) {
    case Shape::Bare:
    case Shape::KeyMaybe:
    case Shape::Level:
    case Shape::Auth:
      answer_packet(packet);
      return true;
    case Shape::Flush:
      if (!service_.options_.allows_admin) {
        refuse_packet(packet, Status::UnknownCommand);
        return true;
      }
      break;
    default:
      break;
  }
  if (!packet.has_complete_value && !queue_.empty()) [[unlikely]] {
    hold(kBarrier);
    return false;
  }
  send_packet(packet);
  return true;
}

void Session::send_packet(const memcache_binary::Request& packet) {
  BinaryDesk& desk = service_.binary_desk();
  const auto key_limit = service_.options_.words == memcache::ErrorWords::Store
                             ? memcache_binary::KeyLimit::Decoded
                             : memcache_binary::KeyLimit::Wire;
  const bool is_refused = service_.context_.budget.is_exhausted();
  memcache::Request request;
  if (is_refused || !memcache_binary::compose_text_request(packet, key_limit, desk.request_text(),
                                                           request)) [[unlikely]] {
    if (is_refused) {
      service_.stats_->memory_refusals.add(1);
    }
    skip_left_ = packet.has_complete_value ? 0 : packet.value_bytes;
    refuse_packet(packet, is_refused ? Status::OutOfMemory : Status::InvalidArguments);
    return;
  }
  service_.stats_->requests[static_cast<std::size_t>(request.command)].add(1);
  Call& call = make_call(request);
  call.sink = &desk.open_reply(*this, packet);
  if (packet.order.is_quiet) {
    call.quiet = quiet_of(request);
  }
  if (packet.has_complete_value) [[likely]] {
    service_.target_->send(call, request);
  } else {
    body_opcode_ = packet.opcode;
    body_opaque_ = packet.opaque;
    send_streamed(call, request, packet.value_bytes);
  }
  desk.shrink_request_text();
}

/// Bytes of a streamed value, which have no line end behind them as those of text clients have.
void Session::pass_value_of_packet(Call& call, std::string_view bytes) {
  const Flow flow = call.body_sink->on_body(call, bytes, false);
  if (body_call_ == nullptr || body_left_ != 0) {
    on_body_taken(flow, bytes.size());
    return;
  }
  forget_body();
  hold(kBarrier);
  call.body_sink->on_body(call, kValueEnd, true);
}

void Session::tell_of_late_packet() {
  std::string text;
  compose_binary_text(text, body_opcode_, body_opaque_, Status::InternalError, kLateBodyText);
  write(text);
}

// What needs no call.

void Session::answer_packet(const memcache_binary::Request& packet) {
  service_.stats_->requests[static_cast<std::size_t>(command_of(packet.order.plain))].add(1);
  switch (packet.order.plain) {
    case Opcode::Noop:
      answer_packet_with(packet, Status::Ok, {}, ReplyCode::MetaMn);
      return;
    case Opcode::Version:
      answer_packet_with(packet, Status::Ok, service_.context_.commands.version(),
                         ReplyCode::Version);
      return;
    case Opcode::Quit:
      if (!packet.order.is_quiet) {
        answer_packet_with(packet, Status::Ok, {}, ReplyCode::Ok);
      }
      phase_ = Phase::Ending;
      return;
    case Opcode::Verbosity:
      service_.context_.commands.set_verbosity(
          memcache_binary::read_big_endian<std::uint32_t>(packet.extras));
      answer_packet_with(packet, Status::Ok, {}, ReplyCode::Ok);
      return;
    case Opcode::Stat:
      answer_packet_stats(packet);
      return;
    default:
      authenticate_packet(packet);
      return;
  }
}

void Session::answer_packet_with(const memcache_binary::Request& packet, Status status,
                                 std::string_view text, ReplyCode code) {
  std::string& bytes = service_.binary_desk().reply_text();
  compose_binary_text(bytes, packet.opcode, packet.opaque, status, text);
  answer_with(bytes, code);
}

void Session::refuse_packet(const memcache_binary::Request& packet, Status status) {
  answer_packet_with(packet, status, memcache_binary::status_text(status), code_of(status));
}

void Session::answer_packet_stats(const memcache_binary::Request& packet) {
  std::string reply;
  if (!service_.context_.commands.stats(packet.key, reply) || reply.starts_with("CLIENT_ERROR")) {
    refuse_packet(packet, Status::NotFound);
    return;
  }
  answer_with(compose_stats(packet, reply), ReplyCode::Other);
}

bool Session::may_pass_locked(const memcache_binary::Request& packet) {
  return packet.order.plain == Opcode::Version || packet.order.plain == Opcode::SaslListMechs ||
         packet.order.shape == Shape::Auth;
}

/// SASL against the credentials of text clients. Without any it is unknown here, as it is to a
/// memcached that was started without SASL.
void Session::authenticate_packet(const memcache_binary::Request& packet) {
  // A listener may have lost its credentials since the client came; then everybody may.
  const auto& credentials = service_.options_.credentials;
  if (credentials == nullptr) {
    is_locked_ = false;
    refuse_packet(packet, Status::UnknownCommand);
    return;
  }
  if (packet.order.plain == Opcode::SaslListMechs) {
    answer_packet_with(packet, Status::Ok, kPlain, ReplyCode::Other);
    return;
  }
  // PLAIN says all in its first packet: there is no step to wait for.
  const bool is_plain = packet.order.plain == Opcode::SaslAuth && packet.key == kPlain;
  const std::string words = is_plain ? credentials_of(packet.value) : std::string{};
  is_locked_ = words.empty() || !credentials->allow(words);
  service_.stats_->authentications.add(1);
  if (is_locked_) {
    service_.stats_->authentications_failed.add(1);
    refuse_packet(packet, Status::AuthError);
    return;
  }
  answer_packet_with(packet, Status::Ok, kAuthenticated, ReplyCode::Ok);
}

}  // namespace kvferry::front
