// Commands about the server that a client of Redis thinks it talks to.
#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "front/client_registry.h"
#include "front/resp_client.h"
#include "front/session.h"
#include "protocol/redis_commands/command_names.h"
#include "protocol/redis_commands/command_replies.h"
#include "protocol/resp/glob.h"

namespace kvferry::front {

using resp::ReplyWriter;

namespace {

constexpr std::string_view kNoCluster = "ERR This instance has cluster support disabled";

}  // namespace

void RespClient::command_info(Args args, ReplyWriter& reply) {
  redis::compose_command_reply(args, {}, reply);
}

void RespClient::info(Args args, ReplyWriter& reply) {
  std::string text;
  session_.service_.context_.commands.redis_info(args.subspan(1), text);
  reply.verbatim("txt", text);
}

void RespClient::time(Args /*args*/, ReplyWriter& reply) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto micros = std::chrono::duration_cast<base::Micros>(now).count();
  reply.array(2);
  reply.bulk(std::to_string(micros / 1'000'000));
  reply.bulk(std::to_string(micros % 1'000'000));
}

void RespClient::role(Args /*args*/, ReplyWriter& reply) {
  reply.array(3);
  reply.bulk("master");
  reply.integer(0);
  reply.array(0);
}

void RespClient::config_get(Args args, ReplyWriter& reply) {
  std::vector<std::pair<std::string, std::string>> found;
  for (auto& setting : session_.service_.context_.commands.redis_settings()) {
    const auto is_asked = [&](std::string_view pattern) {
      return resp::matches_glob(pattern, setting.first, resp::LetterCase::Ignored);
    };
    if (std::ranges::any_of(args.subspan(2), is_asked)) {
      found.push_back(std::move(setting));
    }
  }
  reply.map(found.size());
  for (const auto& [name, value] : found) {
    reply.bulk(name);
    reply.bulk(value);
  }
}

void RespClient::config_set(Args /*args*/, ReplyWriter& reply) {
  reply.error(
      "ERR kvferry: settings are changed in the configuration file, which is read again by SIGHUP");
}

void RespClient::config_reset(Args /*args*/, ReplyWriter& reply) {
  reply.error("ERR kvferry: statistics count from the start of the program and are not reset");
}

void RespClient::config_rewrite(Args /*args*/, ReplyWriter& reply) {
  reply.error("ERR kvferry: the configuration file is not written by the program");
}

void RespClient::cluster_info(Args /*args*/, ReplyWriter& reply) {
  reply.verbatim("txt", "cluster_enabled:0\r\n");
}

void RespClient::cluster_key_slot(Args args, ReplyWriter& reply) {
  reply.integer(session_.service_.context_.commands.redis_key_slot(args[2]));
}

void RespClient::no_cluster(Args /*args*/, ReplyWriter& reply) {
  reply.error(kNoCluster);
}

void RespClient::acl_who_am_i(Args /*args*/, ReplyWriter& reply) {
  reply.bulk(card_ == nullptr ? std::string("default") : card_->texts().user);
}

/// The categories, or the commands of one of them.
void RespClient::acl_categories(Args args, ReplyWriter& reply) {
  if (args.size() > 3) {
    reply.error("ERR unknown subcommand or wrong number of arguments for 'cat'. Try ACL HELP.");
    return;
  }
  if (args.size() == 2) {
    reply.array(redis::kCategoryNames.size());
    for (const std::string_view name : redis::kCategoryNames) {
      reply.bulk(name);
    }
    return;
  }
  const std::uint32_t category = redis::category_bit(args[2]);
  if (category == 0) {
    reply.error(std::string("ERR Unknown category '").append(args[2]).append("'"));
    return;
  }
  std::vector<std::string_view> found;
  for (const redis::Command& command : redis::all_commands()) {
    if ((command.categories & category) != 0) {
      found.push_back(command.name);
    }
  }
  reply.array(found.size());
  for (const std::string_view name : found) {
    reply.bulk(name);
  }
}

}  // namespace kvferry::front
