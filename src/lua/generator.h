// Generator: a function generator of a script: makes slots, each of which serves one request at a
// time.
//
//   Open --ready()--> Ready --last release()--> Closed
//
// Lifetime:  lives in a userdata (kGeneratorType); while it is acquired or has requests in flight,
// the
//            state's registry keeps that userdata.
// Threads:   one worker.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lua/hookable.h"
#include "lua/plain_function.h"
#include "lua/stack.h"
#include "lua/tickets.h"

namespace kvferry::lua {

class ScriptSlot;
class WorkerState;

inline constexpr const char* kGeneratorType = "mcp.funcgen";
inline constexpr std::size_t kGeneratorNameBytesMax = 80;
/// Handles of one generator.
inline constexpr std::size_t kHandlesMax = Ticket::kHandles;
/// Request and response objects that one slot may make.
inline constexpr std::uint32_t kSlotObjectsMax = 255;

/// When free slots are given up. The numbers of memcached's proxy.
struct SlotShrink {
  std::int32_t pressure_max = 5000;
  std::int32_t pressure_drop = 200;
  base::Seconds wait{60};
};

class Generator final : public Hookable, public call::Target {
 public:
  using Target = std::variant<call::Target*, Generator*>;

  explicit Generator(WorkerState& state);
  ~Generator() override;

  // Configuration.

  /// Returns the handle. The userdata of `target` is kept alive by the caller (anchor table).
  /// `route` is that of a native route, null otherwise.
  std::uint32_t add_handle(Target target, Hookable* route);
  /// Closes configuration; the first slot is built by the caller (build_slot), which may raise.
  void set_ready(std::string_view name, std::uint32_t objects_max);
  bool is_ready() const { return is_ready_; }
  bool is_closed() const { return is_closed_; }

  /// Runs a request of a native route that this is a child of.
  void send(call::Call& call, const memcache::Request& request) override;

  // Hookable
  void run(call::Call& call, const memcache::Request& request) override;
  Passage passage(const memcache::Request& request) override;
  void acquire() override;
  void release() override;

  /// Makes the first slot; false with a Lua error value on top of `lua`'s stack.
  bool build_first(lua_State* lua);
  /// A slot of ours has ended its request.
  void on_slot_free(ScriptSlot& slot);

  WorkerState& state() { return state_; }
  const std::string& name() const { return name_; }
  std::uint32_t objects_max() const { return objects_max_; }
  const std::vector<Target>& handles() const { return handles_; }

  /// Pushes the table that holds what this keeps alive in Lua: "f", "a", targets, contexts; nil
  /// when the userdata is being collected.
  void push_anchors(lua_State* lua) const;

 private:
  /// Null with a Lua error value on top of `lua`'s stack.
  std::unique_ptr<ScriptSlot> build_slot(lua_State* lua);
  /// A slot for a parent, which owns it from now on: a free one, else a new one; as build_slot().
  std::unique_ptr<ScriptSlot> give_slot(lua_State* lua);
  /// `is_counted`: as one of the requests that clients have under way.
  void start(call::Call& call, const memcache::Request& request, bool is_counted);
  void add_free(std::unique_ptr<ScriptSlot> slot);
  ScriptSlot* take_slot();
  /// The handle that the function forwards `request` to and does nothing else; null: not so.
  call::Target* forwards_to(std::uint32_t handle, const memcache::Request& request);
  /// Serves a request without Lua when its function is of that kind; false: not so.
  bool run_plain(call::Call& call, const memcache::Request& request);
  void on_plain_done();
  bool wants_to_shrink();
  void acquire_handles();
  void release_handles();
  void close();
  void drop_slots();
  void count_active();
  void pin();
  void unpin_if_unused();

  WorkerState& state_;
  std::string name_ = "anonymous";
  std::vector<Target> handles_;
  std::vector<Hookable*> routes_;                   // Native routes among the handles.
  std::vector<std::unique_ptr<ScriptSlot>> slots_;  // All that are not a parent's own.
  std::vector<ScriptSlot*> free_;
  PlainForward forward_;
  std::uint32_t objects_max_ = 0;
  std::uint32_t acquired_ = 0;
  std::uint32_t active_ = 0;
  std::int32_t pressure_ = 0;
  base::SteadyTime shrink_at_{};
  bool is_ready_ = false;
  bool is_counted_ = false;
  bool is_closed_ = false;
};

/// Pushes a new generator; returns it.
Generator& push_generator(lua_State* lua, WorkerState& state);
/// Argument `index`, which must be a generator; raises otherwise.
Generator& check_generator(lua_State* lua, int index);
/// Null when it is none.
Generator* generator_at(lua_State* lua, int index);
/// Adds mcp.funcgen_new and the type to the table at the top of the stack.
void define_generator(lua_State* lua);

}  // namespace kvferry::lua
