// RespClient: the part of a session that speaks the Redis protocol: requests out of bytes, what the
// session itself answers, and where everything else goes. Order of replies, holding, streaming and
// death stay the Session's.
//
//   bytes --parser_--> arguments --> answered here, kept for EXEC, or sent to the target
//
// A request with an argument of 64 KiB or more is passed on while it comes (Intake::Stream) where
// the target needs no more than its begin, and is waited for otherwise; what is larger than may be
// kept is swallowed, then refused.
//
// Source:    redis.io, commands and protocol specification; texts as redis-server 7.0 has them.
// Lifetime:  owned by its session.
// Threads:   one worker.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "call/call.h"
#include "front/resp_transaction.h"
#include "front/service.h"
#include "protocol/redis_commands/command_table.h"
#include "protocol/resp/reply_writer.h"
#include "protocol/resp/request_parser.h"

namespace kvferry::front {

class ClientCard;
struct ClientFilter;
class Session;

class RespClient final : public call::ReplySink {
 public:
  using Args = std::span<const std::string_view>;

  explicit RespClient(Session& session);
  RespClient(const RespClient&) = delete;
  RespClient& operator=(const RespClient&) = delete;
  ~RespClient();

  /// Takes a request, or a piece of one, from the front of `bytes`; returns how many bytes, 0 when
  /// it cannot now.
  std::size_t consume(std::string_view bytes);
  /// A request has begun to be taken and has not ended.
  bool is_in_request() const { return intake_ != Intake::Whole; }
  /// The rest of the request that is being passed on is not wanted: it is read and dropped.
  void drop_rest();
  /// CLIENT KILL: closes the connection.
  void kill();

  // call::ReplySink
  call::Flow on_reply(call::Call& call, const call::ReplyPart& part) override;
  void prefetch(const call::Call& call) const override;
  void on_blocked(call::Call& call) override;

  /// The line for a client whose value came too slowly.
  static constexpr std::string_view kLateBodyLine =
      "-ERR kvferry: the rest of the request did not come in time\r\n";
  /// In place of a reply that was cut off before its turn came.
  static constexpr std::string_view kCutLine =
      "-UNAVAIL kvferry: connection lost after the command was sent; it may have run\r\n";
  static constexpr std::string_view kTooManyLine = "-ERR max number of clients reached\r\n";

 private:
  enum class Intake : std::uint8_t {
    Whole,    // Requests come whole.
    Stream,   // One is being passed on while it comes.
    Discard,  // One is being swallowed.
  };
  /// What CLIENT REPLY has said.
  enum class Mute : std::uint8_t { Off, Next, This, On };

  // Requests out of bytes: resp_client.cc.
  std::size_t begin_long_request(const resp::RequestRun& run, std::string_view bytes);
  bool may_stream(const resp::RequestRun& run) const;
  std::size_t begin_stream(const resp::RequestRun& run, std::string_view bytes);
  std::size_t begin_discard(const resp::RequestRun& run, std::string_view refusal);
  std::size_t go_on(const resp::RequestRun& run, std::string_view bytes);
  std::size_t take_streamed(std::string_view bytes);
  void pass_piece(std::string_view bytes, bool is_last);
  void end_discard();
  std::size_t on_parse_failure(const resp::ParseFailure& failure, std::size_t size_bytes);

  // From requests to answers: resp_dispatch.cc.
  void dispatch(Args args, std::string_view bytes);
  bool may_administer() const;
  bool is_good(const redis::Resolution& found, Args args, std::string& error) const;
  void run(const redis::Command& command, Args args, std::string_view bytes);
  bool answer_before_login(const redis::Command& command);
  void queue(const redis::Command& command, Args args, std::string_view bytes);
  void send(const redis::Command& command, Args args, std::string_view bytes);
  call::Call& make_call(const redis::Command& command);
  void reject(const redis::Command& command, std::string_view error);
  void answer(const redis::Command& command, std::string_view reply);

  // What is answered here.
  using Local = void (RespClient::*)(Args, resp::ReplyWriter&);
  static Local find_local(const redis::Command& command);

  // The connection: resp_connection_commands.cc.
  void ping(Args args, resp::ReplyWriter& reply);
  void echo(Args args, resp::ReplyWriter& reply);
  void quit(Args args, resp::ReplyWriter& reply);
  void reset(Args args, resp::ReplyWriter& reply);
  void select(Args args, resp::ReplyWriter& reply);
  void authenticate(Args args, resp::ReplyWriter& reply);
  void hello(Args args, resp::ReplyWriter& reply);
  void accept(Args args, resp::ReplyWriter& reply);
  void multi(Args args, resp::ReplyWriter& reply);
  void discard(Args args, resp::ReplyWriter& reply);
  void exec(Args args, resp::ReplyWriter& reply);
  bool log_in(std::string_view user, std::string_view password, resp::ReplyWriter& reply);
  void write_hello(resp::ReplyWriter& reply) const;
  void forget_transaction();
  void drop_transaction();
  void execute(const RespTransaction& transaction);
  std::string_view read_database(std::string_view word, std::uint32_t& database) const;
  void take_selected(const call::Call& exec, memcache::ReplyCode code);
  void begin_lane();
  void set_version(resp::Version version);
  void set_database(std::uint32_t database);

  // Clients: resp_client_commands.cc.
  void client_id(Args args, resp::ReplyWriter& reply);
  void client_get_name(Args args, resp::ReplyWriter& reply);
  void client_set_name(Args args, resp::ReplyWriter& reply);
  void client_set_info(Args args, resp::ReplyWriter& reply);
  void client_info(Args args, resp::ReplyWriter& reply);
  void client_list(Args args, resp::ReplyWriter& reply);
  void client_kill(Args args, resp::ReplyWriter& reply);
  std::int64_t kill_others(const ClientFilter& filter);
  void client_reply(Args args, resp::ReplyWriter& reply);
  void client_switch(Args args, resp::ReplyWriter& reply);
  void client_get_redirection(Args args, resp::ReplyWriter& reply);
  void client_unblock(Args args, resp::ReplyWriter& reply);
  bool set_name(std::string_view name, resp::ReplyWriter& reply);

  // The server: resp_server_commands.cc.
  void command_info(Args args, resp::ReplyWriter& reply);
  void info(Args args, resp::ReplyWriter& reply);
  void time(Args args, resp::ReplyWriter& reply);
  void role(Args args, resp::ReplyWriter& reply);
  void config_get(Args args, resp::ReplyWriter& reply);
  void config_set(Args args, resp::ReplyWriter& reply);
  void config_reset(Args args, resp::ReplyWriter& reply);
  void config_rewrite(Args args, resp::ReplyWriter& reply);
  void cluster_info(Args args, resp::ReplyWriter& reply);
  void cluster_key_slot(Args args, resp::ReplyWriter& reply);
  void no_cluster(Args args, resp::ReplyWriter& reply);
  void acl_who_am_i(Args args, resp::ReplyWriter& reply);
  void acl_categories(Args args, resp::ReplyWriter& reply);

  const RespOptions& options() const;
  /// Of the loop, as cards have it.
  std::int64_t steady_ms() const;
  void note_queued();

  Session& session_;
  resp::RequestParser parser_;
  std::shared_ptr<ClientCard> card_;
  std::unique_ptr<RespTransaction> transaction_;  // Since MULTI.
  std::uint64_t streamed_left_ =
      0;                 // Bytes of the streamed argument, and its line end, that have not come.
  std::string refusal_;  // What the request that is being swallowed is answered with.
  std::uint32_t database_ = 0;
  std::optional<std::uint32_t> selected_;  // By the EXEC that is outstanding.
  resp::Version version_ = resp::Version::Two;
  Intake intake_ = Intake::Whole;
  Mute mute_ = Mute::Off;
  bool is_last_run_ = false;  // Nothing of the request follows the streamed argument.
  bool is_known_;             // It has said who it is, or need not.
  bool is_silent_ = false;    // The request that is being handled is answered with nothing.
};

}  // namespace kvferry::front
