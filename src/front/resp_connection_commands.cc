// Commands about the connection itself: who the client is, which version and database it uses,
// transactions.
#include <charconv>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "front/client_registry.h"
#include "front/resp_client.h"
#include "front/session.h"
#include "protocol/redis_commands/command_table.h"
#include "protocol/resp/integer.h"
#include "protocol/resp/words.h"

namespace kvferry::front {

using resp::is_word;
using resp::ReplyWriter;
using resp::Version;

namespace {

constexpr std::string_view kNoIntegerError = "ERR value is not an integer or out of range";
constexpr std::string_view kWrongPassword =
    "WRONGPASS invalid username-password pair or user is disabled.";
constexpr std::string_view kNoPasswordSet =
    "ERR AUTH <password> called without any password configured for the default user. Are you sure "
    "your configuration is "
    "correct?";
constexpr std::string_view kHelloNeedsLogin =
    "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH "
    "<user> <pass> option can "
    "be used to authenticate the client and select the RESP protocol version at the same time";
constexpr std::string_view kDefaultUser = "default";

const redis::Command& exec_command() {
  static const redis::Command* const kExec = redis::find_command("exec");
  return *kExec;
}

/// What HELLO says, all of it read before anything is done.
struct Hello {
  std::optional<Version> version;
  std::string_view user;
  std::string_view password;
  std::string_view name;
  bool has_login = false;
  bool has_name = false;
};

/// False: the error is written.
bool read_hello(RespClient::Args args, ReplyWriter& reply, Hello& hello) {
  if (args.size() == 1) {
    return true;
  }
  std::int64_t version = 0;
  if (!resp::read_integer(args[1], version)) {
    reply.error("ERR Protocol version is not an integer or out of range");
    return false;
  }
  if (version != 2 && version != 3) {
    reply.error("NOPROTO unsupported protocol version");
    return false;
  }
  hello.version = version == 2 ? Version::Two : Version::Three;
  for (std::size_t i = 2; i < args.size();) {
    const std::size_t left = args.size() - i - 1;
    if (is_word(args[i], "auth") && left >= 2) {
      hello.has_login = true;
      hello.user = args[i + 1];
      hello.password = args[i + 2];
      i += 3;
    } else if (is_word(args[i], "setname") && left >= 1) {
      hello.has_name = true;
      hello.name = args[i + 1];
      i += 2;
    } else {
      reply.error(std::string("ERR Syntax error in HELLO option '").append(args[i]).append("'"));
      return false;
    }
  }
  return true;
}

}  // namespace

void RespClient::ping(Args args, ReplyWriter& reply) {
  if (args.size() > 2) {
    reply.error("ERR wrong number of arguments for 'ping' command");
  } else if (args.size() == 2) {
    reply.bulk(args[1]);
  } else {
    reply.simple("PONG");
  }
}

void RespClient::echo(Args args, ReplyWriter& reply) {
  reply.bulk(args[1]);
}

void RespClient::quit(Args /*args*/, ReplyWriter& reply) {
  reply.simple("OK");
  session_.phase_ = Session::Phase::Ending;
}

/// Everything that the client has set returns to what it was at its begin.
void RespClient::reset(Args /*args*/, ReplyWriter& reply) {
  forget_transaction();
  set_version(Version::Two);
  mute_ = Mute::Off;
  is_silent_ = false;
  is_known_ = options().credentials == nullptr;
  parser_.set_client_known(is_known_);
  set_database(0);
  if (card_ != nullptr) {
    card_->edit_texts([](ClientCard::Texts& texts) {
      texts.name.clear();
      texts.user = kDefaultUser;
    });
  }
  reply.simple("RESET");
}

void RespClient::select(Args args, ReplyWriter& reply) {
  std::uint32_t database = 0;
  if (const std::string_view error = read_database(args[1], database); !error.empty()) {
    reply.error(error);
  } else {
    set_database(database);
    reply.simple("OK");
  }
}

/// The error when `word` names no database.
std::string_view RespClient::read_database(std::string_view word, std::uint32_t& database) const {
  std::int64_t number = 0;
  if (!resp::read_integer(word, number) || number > INT32_MAX || number < INT32_MIN) {
    return kNoIntegerError;
  }
  if (number < 0 || number >= static_cast<std::int64_t>(options().databases)) {
    return "ERR DB index is out of range";
  }
  database = static_cast<std::uint32_t>(number);
  return {};
}

void RespClient::set_version(Version version) {
  if (version != version_) {
    begin_lane();
  }
  version_ = version;
  if (card_ != nullptr) {
    card_->note_version(static_cast<std::uint8_t>(version_));
  }
}

/// What is sent from now on travels on other connections than what was sent before: it waits until
/// that is answered.
void RespClient::begin_lane() {
  if (!session_.queue_.empty()) {
    session_.hold(Session::kBarrier);
  }
}

void RespClient::set_database(std::uint32_t database) {
  if (database != database_) {
    begin_lane();
  }
  database_ = database;
  if (card_ != nullptr) {
    card_->note_database(database);
  }
}

void RespClient::authenticate(Args args, ReplyWriter& reply) {
  if (args.size() > 3) {
    reply.error("ERR syntax error");
    return;
  }
  if (args.size() == 2 && options().credentials == nullptr) {
    reply.error(kNoPasswordSet);
    return;
  }
  const std::string_view user = args.size() == 3 ? args[1] : kDefaultUser;
  if (log_in(user, args.back(), reply)) {
    reply.simple("OK");
  }
}

/// False: the error is written.
bool RespClient::log_in(std::string_view user, std::string_view password, ReplyWriter& reply) {
  const auto& credentials = options().credentials;
  session_.service_.stats_->authentications.add(1);
  // Without credentials there is the default user only, whom every password opens.
  const bool is_good = credentials == nullptr
                           ? user == kDefaultUser
                           : user.size() + password.size() < kAuthenticationBytesMax &&
                                 credentials->allow(std::string(user).append(" ").append(password));
  if (!is_good) {
    session_.service_.stats_->authentications_failed.add(1);
    reply.error(kWrongPassword);
    return false;
  }
  is_known_ = true;
  parser_.set_client_known(true);
  if (card_ != nullptr) {
    card_->edit_texts([user](ClientCard::Texts& texts) { texts.user = user; });
  }
  return true;
}

void RespClient::hello(Args args, ReplyWriter& reply) {
  Hello hello;
  if (!read_hello(args, reply, hello)) {
    return;
  }
  if (hello.has_login && !log_in(hello.user, hello.password, reply)) {
    return;
  }
  if (!is_known_) {
    reply.error(kHelloNeedsLogin);
    return;
  }
  if (hello.has_name && !set_name(hello.name, reply)) {
    return;
  }
  set_version(hello.version.value_or(version_));
  std::string& text = session_.service_.resp_reply_;
  ReplyWriter writer(version_, text);  // Its own answer is in the new version already.
  write_hello(writer);
}

void RespClient::write_hello(ReplyWriter& reply) const {
  reply.map(7);
  reply.bulk("server");
  reply.bulk(options().server_name);
  reply.bulk("version");
  reply.bulk(options().server_version);
  reply.bulk("proto");
  reply.integer(static_cast<int>(version_));
  reply.bulk("id");
  reply.integer(card_ == nullptr ? 0 : static_cast<std::int64_t>(card_->id()));
  reply.bulk("mode");
  reply.bulk("standalone");
  reply.bulk("role");
  reply.bulk("master");
  reply.bulk("modules");
  reply.array(0);
}

/// READONLY, READWRITE: they change nothing where there are no replicas.
void RespClient::accept(Args /*args*/, ReplyWriter& reply) {
  reply.simple("OK");
}

void RespClient::multi(Args /*args*/, ReplyWriter& reply) {
  if (transaction_ != nullptr) {
    reply.error("ERR MULTI calls can not be nested");
    return;
  }
  transaction_ = std::make_unique<RespTransaction>(
      session_.service_.context_.loop, options().transaction_idle_max,
      net::Timer::Callback::to<&RespClient::drop_transaction>(this));
  note_queued();
  reply.simple("OK");
}

void RespClient::discard(Args /*args*/, ReplyWriter& reply) {
  if (transaction_ == nullptr) {
    reply.error("ERR DISCARD without MULTI");
    return;
  }
  forget_transaction();
  reply.simple("OK");
}

void RespClient::exec(Args /*args*/, ReplyWriter& reply) {
  if (transaction_ == nullptr) {
    reply.error("ERR EXEC without MULTI");
    return;
  }
  const std::unique_ptr<RespTransaction> transaction = std::move(transaction_);
  note_queued();
  if (transaction->phase() == RespTransaction::Phase::Dropped) {
    const auto idle = std::chrono::duration_cast<std::chrono::seconds>(
        options().transaction_idle_max.value_or(base::Millis(0)));
    reply.error("EXECABORT Transaction discarded because of: kvferry: idle for " +
                std::to_string(idle.count()) + " s");
  } else if (transaction->phase() == RespTransaction::Phase::Failed) {
    reply.error("EXECABORT Transaction discarded because of previous errors.");
  } else if (transaction->size() == 0) {
    reply.array(0);
  } else {
    execute(*transaction);
  }
}

void RespClient::execute(const RespTransaction& transaction) {
  call::Call& call = make_call(exec_command());
  if (transaction.selected()) {
    // Which database what follows is for is not known before it is answered.
    selected_ = transaction.selected();
    session_.hold(Session::kBarrier);
  }
  session_.service_.redis_target_->execute(call, transaction.block(version_, database_));
}

/// EXEC of a transaction with SELECT inside was answered: when it has run, so has that.
void RespClient::take_selected(const call::Call& exec, memcache::ReplyCode code) {
  if (exec.redis_command != exec_command().id) {
    return;
  }
  const std::optional<std::uint32_t> database = std::exchange(selected_, std::nullopt);
  if (database && code == memcache::ReplyCode::Value) {
    set_database(*database);
  }
}

/// The client has been silent for too long within its transaction.
void RespClient::drop_transaction() {
  transaction_->drop();
  note_queued();
}

void RespClient::forget_transaction() {
  transaction_.reset();
  note_queued();
}

void RespClient::note_queued() {
  if (card_ != nullptr) {
    card_->note_queued(transaction_ == nullptr ? -1
                                               : static_cast<std::int32_t>(transaction_->size()));
  }
}

}  // namespace kvferry::front
