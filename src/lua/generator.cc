#include "lua/generator.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/check.h"
#include "base/prefetch.h"
#include "lua/native_hook.h"
#include "lua/script_slot.h"
#include "lua/worker_state.h"
#include "pool/mcp_pool.h"

namespace kvferry::lua {

using call::Call;

namespace {

/// Of a free slot, before a request needs it.
constexpr std::size_t kSlotBytesFetched = 10 * base::kCacheLineBytes;

Generator* box_at(lua_State* lua, int index) {
  return static_cast<Generator*>(luaL_testudata(lua, index, kGeneratorType));
}

int collect(lua_State* lua) {
  std::destroy_at(box_at(lua, 1));
  return 0;
}

int make(lua_State* lua) {
  push_generator(lua, Vm::owner_of<WorkerState>(lua));
  return 1;
}

int new_handle(lua_State* lua) {
  Generator& generator = check_generator(lua, 1);
  if (generator.is_ready()) {
    return raise(lua, "cannot modify function generator after calling ready");
  }
  if (generator.handles().size() >= kHandlesMax) {
    return raise(lua, "too many handles for one function generator");
  }
  Generator::Target target;
  if (call::Target* pool = Vm::owner_of<WorkerState>(lua).target_at(lua, 2)) {
    target = pool;
  } else if (Generator* other = generator_at(lua, 2)) {
    if (other->is_closed()) {
      return raise(lua, "cannot use a replaced function in new_handle");
    }
    if (!other->is_ready()) {
      return raise(lua, "invalid argument to new_handle");
    }
    target = other;
  } else if (WorkerState::is_router(lua, 2)) {
    return raise(lua, "cannot assign a router to a handle in new_handle");
  } else {
    return raise(lua, "invalid argument to new_handle");
  }
  generator.push_anchors(lua);
  lua_pushvalue(lua, 2);
  lua_rawseti(lua, -2, static_cast<lua_Integer>(generator.handles().size()) + 1);
  lua_pushinteger(lua, generator.add_handle(target, native_hook_at(lua, 2)));
  return 1;
}

/// Reads the table of ready(); raises on what is wrong. Leaves f and a in the anchor table.
std::uint32_t read_ready(lua_State* lua, Generator& generator) {
  if (lua_getfield(lua, 2, "f") != LUA_TFUNCTION) {
    raise(lua, "Must specify generator function ('f') to fgen:ready");
  }
  generator.push_anchors(lua);
  lua_insert(lua, -2);
  lua_setfield(lua, -2, "f");
  lua_getfield(lua, 2, "a");
  lua_setfield(lua, -2, "a");
  lua_pop(lua, 1);
  std::uint32_t objects = 0;
  if (lua_getfield(lua, 2, "u") != LUA_TNIL) {
    int is_number = 0;
    const lua_Integer wanted = lua_tointegerx(lua, -1, &is_number);
    if (is_number == 0 || wanted < 1 || wanted > kSlotObjectsMax) {
      raise(lua, "user obj ('u') in fgen:ready must be between 1 and 255");
    }
    objects = static_cast<std::uint32_t>(wanted);
  }
  lua_pop(lua, 1);
  return objects;
}

int ready(lua_State* lua) {
  Generator& generator = check_generator(lua, 1);
  luaL_checktype(lua, 2, LUA_TTABLE);
  if (generator.is_ready()) {
    return raise(lua, "cannot modify function generator after calling ready");
  }
  const std::uint32_t objects = read_ready(lua, generator);
  lua_getfield(lua, 2, "n");
  const std::string_view name = lua_type(lua, -1) == LUA_TSTRING ? text_at(lua, -1) : "anonymous";
  generator.set_ready(name.substr(0, kGeneratorNameBytesMax), objects);
  // The slot belongs to the generator before anything can raise.
  if (!generator.build_first(lua)) {
    return lua_error(lua);
  }
  return 0;
}

constexpr luaL_Reg kMethods[] = {
    {"new_handle", &new_handle}, {"ready", &ready}, {nullptr, nullptr}};
constexpr luaL_Reg kMetamethods[] = {{"__gc", &collect}, {nullptr, nullptr}};

}  // namespace

Generator::Generator(WorkerState& state)
    : state_(state),
      forward_(state.stats(), base::Delegate<void()>::to<&Generator::on_plain_done>(this)) {}

Generator::~Generator() {
  if (!is_closed_) {
    close();
  }
  KVF_CHECK(active_ == 0);
  drop_slots();
}

std::uint32_t Generator::add_handle(Target target, Hookable* route) {
  handles_.push_back(target);
  if (route != nullptr) {
    routes_.push_back(route);
  }
  return static_cast<std::uint32_t>(handles_.size()) - 1;
}

void Generator::set_ready(std::string_view name, std::uint32_t objects_max) {
  is_ready_ = true;
  name_ = name;
  objects_max_ = objects_max;
}

bool Generator::build_first(lua_State* lua) {
  std::unique_ptr<ScriptSlot> slot = build_slot(lua);
  if (slot == nullptr) {
    return false;
  }
  add_free(std::move(slot));
  return true;
}

void Generator::push_anchors(lua_State* lua) const {
  state_.push_object(lua, this);
  if (lua_isnil(lua, -1) == 0) {
    lua_getiuservalue(lua, -1, 1);
    lua_remove(lua, -2);
  }
}

void Generator::acquire() {
  ++acquired_;
  if (!is_counted_) {
    is_counted_ = true;
    state_.names().add_generators(name_, 1);
    acquire_handles();
  }
  pin();
}

void Generator::acquire_handles() {
  for (const Target& target : handles_) {
    if (Generator* const* child = std::get_if<Generator*>(&target)) {
      (*child)->acquire();
    }
  }
  for (Hookable* const route : routes_) {
    route->acquire();
  }
}

void Generator::release_handles() {
  for (const Target& target : handles_) {
    if (Generator* const* child = std::get_if<Generator*>(&target)) {
      (*child)->release();
    }
  }
  for (Hookable* const route : routes_) {
    route->release();
  }
}

void Generator::release() {
  KVF_CHECK(acquired_ != 0);
  if (--acquired_ == 0) {
    close();
    unpin_if_unused();
  }
}

void Generator::close() {
  is_closed_ = true;
  if (std::exchange(is_counted_, false)) {
    state_.names().add_generators(name_, -1);
    release_handles();
  }
  if (active_ == 0) {
    drop_slots();
  }
}

void Generator::drop_slots() {
  free_.clear();
  slots_.clear();
}

void Generator::pin() {
  state_.pin(this);
}

void Generator::count_active() {
  if (active_++ == 0 && acquired_ == 0) {
    pin();
  }
}

void Generator::unpin_if_unused() {
  if (acquired_ == 0 && active_ == 0) {
    state_.unpin(this);
  }
}

std::unique_ptr<ScriptSlot> Generator::give_slot(lua_State* lua) {
  if (free_.empty()) {
    return build_slot(lua);
  }
  const auto found = std::find_if(
      slots_.begin(), slots_.end(),
      [&](const std::unique_ptr<ScriptSlot>& owned) { return owned.get() == free_.back(); });
  std::unique_ptr<ScriptSlot> slot = std::move(*found);
  slots_.erase(found);
  free_.pop_back();
  return slot;
}

std::unique_ptr<ScriptSlot> Generator::build_slot(lua_State* lua) {
  std::vector<std::unique_ptr<ScriptSlot>> children;
  children.reserve(handles_.size());
  for (const Target& target : handles_) {
    Generator* const* child = std::get_if<Generator*>(&target);
    children.push_back(child == nullptr ? nullptr : (*child)->give_slot(lua));
    if (child != nullptr && children.back() == nullptr) {
      return nullptr;
    }
  }
  auto slot = std::make_unique<ScriptSlot>(*this, std::move(children));
  if (!slot->build(lua)) {
    return nullptr;
  }
  return slot;
}

void Generator::add_free(std::unique_ptr<ScriptSlot> slot) {
  free_.push_back(slot.get());
  slots_.push_back(std::move(slot));
}

ScriptSlot* Generator::take_slot() {
  if (free_.empty()) {
    pressure_ = 0;
    shrink_at_ = {};
    lua_State* lua = state_.current();
    std::unique_ptr<ScriptSlot> slot = build_slot(lua);
    if (slot == nullptr) {
      state_.report_error(lua);
      return nullptr;
    }
    add_free(std::move(slot));
  }
  ScriptSlot* slot = free_.back();
  free_.pop_back();
  // Those of the next requests: the first has been fetched itself by now.
  if (!free_.empty()) {
    free_.back()->prefetch();
    base::prefetch(*(free_.end() - std::min<std::ptrdiff_t>(2, std::ssize(free_))),
                   kSlotBytesFetched);
  }
  return slot;
}

void Generator::run(Call& call, const memcache::Request& request) {
  if (!run_plain(call, request)) {
    start(call, request, true);
  }
}

void Generator::send(Call& call, const memcache::Request& request) {
  start(call, request, false);
}

void Generator::start(Call& call, const memcache::Request& request, bool is_counted) {
  ScriptSlot* slot = take_slot();
  if (slot == nullptr) {
    call::answer(call, kStartFailureLine, memcache::ReplyCode::ServerError);
    return;
  }
  count_active();
  slot->is_counted = is_counted;
  if (is_counted) {
    state_.stats().active.add(1);
  }
  slot->send(call, request);
}

bool Generator::run_plain(Call& call, const memcache::Request& request) {
  if (free_.empty()) {
    return false;
  }
  const ScriptSlot::Plain plain = free_.back()->plain();
  if (plain.kind == PlainKind::None) [[likely]] {
    return false;
  }
  if (plain.kind == PlainKind::Text) {
    free_.back()->answer_text(call);
    return true;
  }
  call::Target* const target = forwards_to(plain.handle, request);
  if (target == nullptr) {
    return false;
  }
  count_active();
  forward_.send(call, request, *target);
  return true;
}

call::Target* Generator::forwards_to(std::uint32_t handle, const memcache::Request& request) {
  call::Target* const* target = std::get_if<call::Target*>(&handles_[handle]);
  const RequestLimits& limits = state_.hooks().limits();
  // What is counted or logged in a slot needs one.
  if (target == nullptr || limits.active_max != 0 || limits.buffer_bytes_max != 0 ||
      state_.is_logged(*target) || !memcache::has_key(request.command)) {
    return nullptr;
  }
  return *target;
}

Passage Generator::passage(const memcache::Request& request) {
  const ScriptSlot::Plain plain = free_.empty() ? ScriptSlot::Plain{} : free_.back()->plain();
  if (plain.kind != PlainKind::Forward) {
    return {};
  }
  auto* pool = dynamic_cast<pool::McpPool*>(forwards_to(plain.handle, request));
  if (pool == nullptr) {
    return {};
  }
  // memcached's proxy sends a request for each key wherever a function is.
  return Passage{.pool = pool,
                 .form = pool->options().has_wide_gets.value_or(false) ? pool::GetForm::Wide
                                                                       : pool::GetForm::Row,
                 .is_for_all_keys = true};
}

void Generator::on_plain_done() {
  if (--active_ == 0 && is_closed_) {
    drop_slots();
    unpin_if_unused();
  }
}

bool Generator::wants_to_shrink() {
  const SlotShrink& shrink = state_.shrink();
  const std::size_t half = slots_.size() / 2;
  if (half == 0 || free_.size() <= half - 1) {
    pressure_ /= 2;
    shrink_at_ = {};
    return false;
  }
  if (++pressure_ <= shrink.pressure_max) {
    return false;
  }
  if (shrink_at_ == base::SteadyTime{}) {
    shrink_at_ = state_.loop().now() + shrink.wait;
  }
  if (state_.loop().now() < shrink_at_) {
    return false;
  }
  pressure_ -= shrink.pressure_drop;
  return true;
}

void Generator::on_slot_free(ScriptSlot& slot) {
  if (slot.is_counted) {
    state_.stats().active.sub(1);
  }
  --active_;
  if (is_closed_ || wants_to_shrink()) {
    const auto found = std::find_if(
        slots_.begin(), slots_.end(),
        [&](const std::unique_ptr<ScriptSlot>& owned) { return owned.get() == &slot; });
    // It is on the stack above us: it goes at the end of the turn.
    state_.bury(std::move(*found));
    slots_.erase(found);
  } else {
    free_.push_back(&slot);
  }
  if (active_ == 0 && is_closed_) {
    drop_slots();
    unpin_if_unused();
  }
}

Generator& push_generator(lua_State* lua, WorkerState& state) {
  void* memory = lua_newuserdatauv(lua, sizeof(Generator), 1);
  // What it keeps alive lies in a table that its userdata holds, so that cycles can be collected.
  lua_newtable(lua);
  lua_setiuservalue(lua, -2, 1);
  auto* generator = std::construct_at(static_cast<Generator*>(memory), state);
  luaL_setmetatable(lua, kGeneratorType);
  state.register_object(lua, generator);
  return *generator;
}

Generator& check_generator(lua_State* lua, int index) {
  return *static_cast<Generator*>(luaL_checkudata(lua, index, kGeneratorType));
}

Generator* generator_at(lua_State* lua, int index) {
  return box_at(lua, index);
}

void define_generator(lua_State* lua) {
  define_type(lua, kGeneratorType, kMethods, kMetamethods);
  lua_pushcfunction(lua, &make);
  lua_setfield(lua, -2, "funcgen_new");
}

}  // namespace kvferry::lua
