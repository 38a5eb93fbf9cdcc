// CLIENT and its kin: what a client says of itself, and asks about others.
#include <algorithm>
#include <fmt/format.h>
#include <iterator>

#include "front/client_registry.h"
#include "front/resp_client.h"
#include "front/session.h"
#include "protocol/redis_commands/command_table.h"
#include "protocol/resp/integer.h"
#include "protocol/resp/words.h"

namespace kvferry::front {

using resp::is_word;
using resp::ReplyWriter;

/// What CLIENT KILL asks for; a client has to fit all of it.
struct ClientFilter {
  std::uint64_t id = 0;
  std::string_view address;
  std::string_view local_address;
  std::string_view user;
  bool spares_asker = true;
  bool is_ordinary = true;  // Of the kind that is asked for; there are no others.

  bool fits(const ClientCard& card) const {
    const ClientCard::Texts texts = card.texts();
    return is_ordinary && (id == 0 || id == card.id()) &&
           (address.empty() || address == texts.address) &&
           (local_address.empty() || local_address == texts.local_address) &&
           (user.empty() || user == texts.user);
  }
};

namespace {

constexpr std::string_view kSyntaxError = "ERR syntax error";
constexpr std::string_view kBadName =
    "ERR Client names cannot contain spaces, newlines or special characters.";

/// Names and the like stand between blanks in lists.
bool is_printable(std::string_view text) {
  return std::ranges::all_of(text, [](char byte) { return byte >= '!' && byte <= '~'; });
}

/// "client|list", or "NULL" before the first command.
std::string_view command_name(const ClientCard& card) {
  const redis::CommandId id = card.command();
  return id < redis::command_count() ? redis::command(id).name : std::string_view("NULL");
}

/// The line about a client, as CLIENT LIST shows it, without its end.
std::string card_line(const ClientCard& card, std::int64_t now_ms) {
  const ClientCard::Texts texts = card.texts();
  return fmt::format(
      "id={} addr={} laddr={} fd=-1 name={} age={} idle={} flags={} db={} sub=0 psub=0 ssub=0 "
      "multi={} qbuf=0 qbuf-free=0 "
      "argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 tot-mem=0 events=r cmd={} user={} "
      "redir=-1 resp={} "
      "lib-name={} lib-ver={}",
      card.id(), texts.address, texts.local_address, texts.name, (now_ms - card.born_ms()) / 1000,
      (now_ms - card.active_ms()) / 1000, card.queued() >= 0 ? "x" : "N", card.database(),
      card.queued(), command_name(card), texts.user, card.version(), texts.lib_name,
      texts.lib_version);
}

/// False: the error is written.
bool read_filter(RespClient::Args words, ReplyWriter& reply, ClientFilter& filter) {
  if (words.size() % 2 != 0) {
    reply.error(kSyntaxError);
    return false;
  }
  for (std::size_t i = 0; i < words.size(); i += 2) {
    const std::string_view value = words[i + 1];
    if (is_word(words[i], "id")) {
      std::int64_t id = 0;
      if (!resp::read_integer(value, id) || id <= 0) {
        reply.error("ERR client-id should be greater than 0");
        return false;
      }
      filter.id = static_cast<std::uint64_t>(id);
    } else if (is_word(words[i], "addr")) {
      filter.address = value;
    } else if (is_word(words[i], "laddr")) {
      filter.local_address = value;
    } else if (is_word(words[i], "user")) {
      filter.user = value;
    } else if (is_word(words[i], "type")) {
      const bool is_known = is_word(value, "normal") || is_word(value, "master") ||
                            is_word(value, "replica") || is_word(value, "slave") ||
                            is_word(value, "pubsub");
      if (!is_known) {
        reply.error(fmt::format("ERR Unknown client type '{}'", value));
        return false;
      }
      filter.is_ordinary = is_word(value, "normal");
    } else if (is_word(words[i], "skipme") && (is_word(value, "yes") || is_word(value, "no"))) {
      filter.spares_asker = is_word(value, "yes");
    } else {
      reply.error(kSyntaxError);
      return false;
    }
  }
  return true;
}

}  // namespace

void RespClient::client_id(Args /*args*/, ReplyWriter& reply) {
  reply.integer(card_ == nullptr ? 0 : static_cast<std::int64_t>(card_->id()));
}

void RespClient::client_get_name(Args /*args*/, ReplyWriter& reply) {
  const std::string name = card_ == nullptr ? std::string() : card_->texts().name;
  if (name.empty()) {
    reply.null();
  } else {
    reply.bulk(name);
  }
}

/// False: the error is written.
bool RespClient::set_name(std::string_view name, ReplyWriter& reply) {
  if (!is_printable(name)) {
    reply.error(kBadName);
    return false;
  }
  if (card_ != nullptr) {
    card_->edit_texts([name](ClientCard::Texts& texts) { texts.name = name; });
  }
  return true;
}

void RespClient::client_set_name(Args args, ReplyWriter& reply) {
  if (set_name(args[2], reply)) {
    reply.simple("OK");
  }
}

void RespClient::client_set_info(Args args, ReplyWriter& reply) {
  const bool is_name = is_word(args[2], "lib-name");
  if (!is_name && !is_word(args[2], "lib-ver")) {
    reply.error(fmt::format("ERR Unrecognized option '{}'", args[2]));
    return;
  }
  const std::string_view value = args[3];
  if (!is_printable(value)) {
    reply.error(fmt::format("ERR {} cannot contain spaces, newlines or special characters.",
                            is_name ? "lib-name" : "lib-ver"));
    return;
  }
  if (card_ != nullptr) {
    card_->edit_texts(
        [&](ClientCard::Texts& texts) { (is_name ? texts.lib_name : texts.lib_version) = value; });
  }
  reply.simple("OK");
}

void RespClient::client_info(Args /*args*/, ReplyWriter& reply) {
  reply.verbatim("txt", card_ == nullptr ? std::string() : card_line(*card_, steady_ms()) + "\n");
}

void RespClient::client_list(Args args, ReplyWriter& reply) {
  std::vector<std::uint64_t> ids;
  bool shows_ordinary = true;
  if (args.size() == 4 && is_word(args[2], "type")) {
    ClientFilter filter;
    if (!read_filter(args.subspan(2), reply, filter)) {
      return;
    }
    shows_ordinary = filter.is_ordinary;
  } else if (args.size() > 3 && is_word(args[2], "id")) {
    for (const std::string_view word : args.subspan(3)) {
      std::int64_t id = 0;
      if (!resp::read_integer(word, id) || id <= 0) {
        reply.error("ERR Invalid client ID");
        return;
      }
      ids.push_back(static_cast<std::uint64_t>(id));
    }
  } else if (args.size() != 2) {
    reply.error(kSyntaxError);
    return;
  }
  std::string text;
  const ClientRegistry* const clients = session_.service_.context_.clients;
  if (clients != nullptr && shows_ordinary) {
    for (const auto& card : clients->list()) {
      if (ids.empty() || std::ranges::find(ids, card->id()) != ids.end()) {
        text.append(card_line(*card, steady_ms())).append("\n");
      }
    }
  }
  reply.verbatim("txt", text);
}

/// How many fit, but for this client itself.
std::int64_t RespClient::kill_others(const ClientFilter& filter) {
  const ClientRegistry* const clients = session_.service_.context_.clients;
  if (clients == nullptr) {
    return 0;
  }
  std::int64_t count = 0;
  for (const auto& card : clients->list()) {
    if (card != card_ && filter.fits(*card)) {
      ++count;
      ClientCard::post(card, [](RespClient& client) { client.kill(); });
    }
  }
  return count;
}

void RespClient::client_kill(Args args, ReplyWriter& reply) {
  ClientFilter filter;
  const bool is_old_form = args.size() == 3;
  if (is_old_form) {
    filter.address = args[2];
    filter.spares_asker = false;
  } else if (!read_filter(args.subspan(2), reply, filter)) {
    return;
  }
  const bool kills_asker = card_ != nullptr && !filter.spares_asker && filter.fits(*card_);
  const std::int64_t count = kill_others(filter) + (kills_asker ? 1 : 0);
  if (!is_old_form) {
    reply.integer(count);
  } else if (count == 0) {
    reply.error("ERR No such client");
  } else {
    reply.simple("OK");
  }
  if (kills_asker) {
    session_.phase_ = Session::Phase::Ending;  // Once it has been told.
  }
}

void RespClient::client_reply(Args args, ReplyWriter& reply) {
  if (is_word(args[2], "on")) {
    mute_ = Mute::Off;
    is_silent_ = false;
    reply.simple("OK");
  } else if (is_word(args[2], "off")) {
    mute_ = Mute::On;
  } else if (is_word(args[2], "skip")) {
    mute_ = mute_ == Mute::On ? Mute::On : Mute::Next;
  } else {
    reply.error(kSyntaxError);
  }
}

/// CLIENT NO-EVICT, CLIENT NO-TOUCH: taken, and without an effect here.
void RespClient::client_switch(Args args, ReplyWriter& reply) {
  if (is_word(args[2], "on") || is_word(args[2], "off")) {
    reply.simple("OK");
  } else {
    reply.error(kSyntaxError);
  }
}

void RespClient::client_get_redirection(Args /*args*/, ReplyWriter& reply) {
  reply.integer(-1);  // Tracking is off.
}

void RespClient::client_unblock(Args args, ReplyWriter& reply) {
  std::int64_t id = 0;
  if (!resp::read_integer(args[2], id)) {
    reply.error("ERR value is not an integer or out of range");
  } else if (args.size() == 4 && !is_word(args[3], "timeout") && !is_word(args[3], "error")) {
    reply.error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
  } else {
    reply.integer(0);  // No client waits for anything.
  }
}

}  // namespace kvferry::front
