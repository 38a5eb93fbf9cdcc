#include "pool/mcp_gets.h"

#include "pool/mcp_failure.h"

namespace kvferry::pool {

using call::Call;

namespace {

constexpr MergeWords kWords{.cut_line = kMcpFailureLine, .foreign_key_line = kMcpFailureLine};
/// Requests of one part for which room is kept.
constexpr std::size_t kBytesKeptMax = std::size_t{64} * 1024;

bool can_be_wide(const memcache::Request& request) {
  return may_line_be_long(request.command) || request.line.size() <= kTouchLineBytesMax;
}

}  // namespace

void McpGets::begin(const memcache::Request& request) {
  MultiGets::begin(request.key_count);
}

bool McpGets::add(std::string_view key, McpPool& pool) {
  McpServer* const server = pool.select(key);
  if (server == nullptr) {
    return false;
  }
  if (server->get_part_ == 0) {
    if (servers_.size() == kGetPartsMax) {
      return false;
    }
    servers_.push_back(server);
    server->get_part_ = static_cast<std::uint32_t>(servers_.size());
  }
  places().push_back(Place{.key = key, .part = server->get_part_ - 1});
  return true;
}

void McpGets::forget_servers() {
  for (McpServer* const server : servers_) {
    server->get_part_ = 0;
  }
}

void McpGets::abandon() {
  forget_servers();
  servers_.clear();
  end();
}

void McpGets::send(Call& parent, const memcache::Request& request, GetForm form) {
  if (!can_be_wide(request)) {
    form = GetForm::Row;
  }
  forget_servers();
  MultiGet& multiget =
      make(parent, request.keys.size(), servers_.size(),
           MergeRules{.on_partial = OnPartial::Element, .form = form, .words = kWords});
  const auto head_bytes = static_cast<std::size_t>(request.keys.data() - request.line.data());
  for (std::uint16_t part = 0; part < part_count(multiget); ++part) {
    send_part(multiget, part, request.line.substr(0, head_bytes), form);
  }
  servers_.clear();
  end();
  start_passing(multiget);
}

void McpGets::send_part(const MultiGet& multiget, std::uint16_t index, std::string_view head,
                        GetForm form) {
  Call& call = call_of(multiget, index);
  bytes_.clear();
  if (form == GetForm::Row) {
    call.reply_count = key_count_of(multiget, index);
    for_each_key(multiget, index,
                 [&](std::string_view key) { bytes_.append(head).append(key).append("\r\n"); });
  } else {
    call.is_wide = true;
    bytes_.append(head.substr(0, head.find_last_not_of(' ') + 1));
    for_each_key(multiget, index, [&](std::string_view key) { bytes_.append(" ").append(key); });
    bytes_.append("\r\n");
  }
  servers_[index]->forward(call, bytes_);
  if (bytes_.capacity() > kBytesKeptMax) [[unlikely]] {
    bytes_ = std::string();
  }
}

}  // namespace kvferry::pool
