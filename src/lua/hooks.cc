#include "lua/hooks.h"

#include <utility>

#include "route/split_get.h"

namespace kvferry::lua {

using call::Call;
using memcache::Command;
using memcache::ReplyCode;

namespace {

constexpr std::string_view kOutOfMemoryLine = "SERVER_ERROR out of memory\r\n";
constexpr std::string_view kActiveLimitLine = "SERVER_ERROR active request limit reached\r\n";

}  // namespace

/// What listeners of one tag send to.
class Hooks::TagTarget final : public call::Target {
 public:
  explicit TagTarget(Hooks& hooks) : hooks_(hooks) {}

  void send(Call& call, const memcache::Request& request) override {
    Hookable* hook = table_[static_cast<std::size_t>(request.command)];
    if (hook == nullptr) {
      hooks_.local_.send(call, request);
      return;
    }
    if (request.key_count > 1) [[unlikely]] {
      hooks_.send_wide(call, request, *hook, *this);
      return;
    }
    ScriptStats& stats = hooks_.stats_;
    if (hooks_.limits_.active_max != 0 && stats.active.get() >= hooks_.limits_.active_max) {
      call::answer(call, kActiveLimitLine, ReplyCode::ServerError);
      return;
    }
    if (!hooks_.has_buffer_room() && memcache::has_value(request.command)) {
      call::answer(call, kOutOfMemoryLine, ReplyCode::ServerError);
      return;
    }
    stats.requests.add(1);
    stats.commands[static_cast<std::size_t>(request.command)].add(1);
    hook->run(call, request);
  }

  void set_table(const Table& table) { table_ = table; }
  const Table& table() const { return table_; }

 private:
  Hooks& hooks_;
  Table table_{};
};

Hooks::Hooks(net::Loop& loop, call::CallPool& calls, call::Target& local, ScriptStats& stats)
    : calls_(calls), local_(local), stats_(stats), passed_gets_(loop, calls, stats) {}

Hooks::~Hooks() {
  clear();
}

/// A get of several keys. Where a limit refuses some of them, they are looked at one by one.
void Hooks::send_wide(Call& call, const memcache::Request& request, Hookable& hook,
                      call::Target& target) {
  const bool is_within_limits =
      limits_.active_max == 0 || stats_.active.get() + request.key_count <= limits_.active_max;
  if (!is_within_limits || !passed_gets_.start(call, request, hook)) {
    route::SplitGet::start(calls_, call, request, target);
  }
}

call::Target& Hooks::target(const std::string& tag) {
  auto& target = targets_[tag];
  if (target == nullptr) {
    target = std::make_unique<TagTarget>(*this);
    rebuild();
  }
  return *target;
}

std::bitset<memcache::kCommandCount> Hooks::keyless(const std::string& tag) {
  target(tag);
  const Table& table = targets_[tag]->table();
  std::bitset<memcache::kCommandCount> commands;
  for (const Command command : {Command::Version, Command::Stats, Command::Quit, Command::Watch}) {
    commands[static_cast<std::size_t>(command)] =
        table[static_cast<std::size_t>(command)] != nullptr;
  }
  return commands;
}

void Hooks::apply(const std::vector<StagedHook>& staged) {
  for (const StagedHook& hook : staged) {
    Hookable*& place = tables_[hook.tag][static_cast<std::size_t>(hook.command)];
    hook.target->acquire();
    if (Hookable* before = std::exchange(place, hook.target)) {
      before->release();
    }
  }
  rebuild();
}

void Hooks::rebuild() {
  const Table untagged = tables_[""];
  for (auto& [tag, target] : targets_) {
    Table table = untagged;
    const auto own = tables_.find(tag);
    for (std::size_t i = 0; own != tables_.end() && i < table.size(); ++i) {
      table[i] = own->second[i] != nullptr ? own->second[i] : table[i];
    }
    target->set_table(table);
  }
}

void Hooks::clear() {
  for (auto& [tag, table] : tables_) {
    for (Hookable*& hook : table) {
      if (hook != nullptr) {
        std::exchange(hook, nullptr)->release();
      }
    }
  }
  rebuild();
}

}  // namespace kvferry::lua
