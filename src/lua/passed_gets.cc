#include "lua/passed_gets.h"

#include "protocol/memcache/token_walker.h"
#include "route/split_get.h"

namespace kvferry::lua {

using pool::GetForm;

PassedGets::PassedGets(net::Loop& loop, call::CallPool& calls, ScriptStats& stats)
    : stats_(stats), gets_(loop, calls, loop.blocks().budget(), *this) {}

bool PassedGets::start(call::Call& call, const memcache::Request& request, Hookable& hook) {
  const auto head_bytes = static_cast<std::size_t>(request.keys.data() - request.line.data());
  if (head_bytes > route::SplitGet::kHeadBytesMax) {
    return false;
  }
  gets_.begin(request);
  GetForm form = GetForm::Wide;
  if (!place(request, hook, form)) {
    gets_.abandon();
    return false;
  }
  stats_.requests.add(request.key_count);
  stats_.commands[static_cast<std::size_t>(request.command)].add(request.key_count);
  stats_.active.add(request.key_count);
  gets_.send(call, request, form);
  return true;
}

bool PassedGets::place(const memcache::Request& request, Hookable& hook, GetForm& form) {
  memcache::Request asked = request;
  asked.key_count = 1;
  Passage passage;
  memcache::KeyWalker keys(request.keys);
  for (std::uint32_t i = 0; i < request.key_count; ++i) {
    const std::string_view key = keys.next();
    if (key.size() > memcache::kKeyBytesMax) {
      return false;
    }
    if (!passage.is_for_all_keys) {
      asked.key = key;
      passage = hook.passage(asked);
    }
    if (passage.pool == nullptr || !gets_.add(key, *passage.pool)) {
      return false;
    }
    if (passage.form == GetForm::Row) {
      form = GetForm::Row;
    }
  }
  return true;
}

}  // namespace kvferry::lua
