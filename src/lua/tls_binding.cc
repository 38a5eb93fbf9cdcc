// mcp.init_tls: how backends with `tls = true` are spoken to.
#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>
#include <variant>

#include "lua/config_state.h"
#include "lua/stack.h"
#include "net/tls_context.h"

namespace kvferry::lua {
namespace {

using net::TlsContext;
using net::TlsContextPtr;
using net::TlsOptions;
using net::TlsVerify;

/// Errors of files are cut after so much.
constexpr std::size_t kProblemBytesMax = 512;
using ProblemText = std::array<char, kProblemBytesMax>;

/// The table of init_tls, as views into it.
struct TlsWishes {
  std::string_view ca;
  std::string_view cert;
  std::string_view key;
  std::string_view sni;
  std::string_view verify;
};

constexpr std::pair<const char*, std::string_view TlsWishes::*> kWishes[] = {
    {"ca", &TlsWishes::ca},
    {"cert", &TlsWishes::cert},
    {"key", &TlsWishes::key},
    {"sni", &TlsWishes::sni},
    {"verify", &TlsWishes::verify}};

constexpr std::pair<std::string_view, TlsVerify> kVerifyWords[] = {
    {"none", TlsVerify::None}, {"ca", TlsVerify::Require}, {"full", TlsVerify::Full}};

const TlsVerify* find_verify(std::string_view word) {
  const auto* const found = std::find_if(std::begin(kVerifyWords), std::end(kVerifyWords),
                                         [&](const auto& each) { return each.first == word; });
  return found == std::end(kVerifyWords) ? nullptr : &found->second;
}

TlsWishes read_wishes(lua_State* lua) {
  TlsWishes wishes{.ca = {}, .cert = {}, .key = {}, .sni = {}, .verify = "full"};
  lua_pushnil(lua);
  while (lua_next(lua, 1) != 0) {
    const std::string_view name =
        lua_type(lua, -2) == LUA_TSTRING ? text_at(lua, -2) : std::string_view{};
    const auto* const wish = std::find_if(std::begin(kWishes), std::end(kWishes),
                                          [&](const auto& each) { return each.first == name; });
    if (wish == std::end(kWishes) || lua_type(lua, -1) != LUA_TSTRING) {
      raise(lua, "init_tls takes a table of texts: ca, cert, key, sni, verify");
    }
    wishes.*wish->second = text_at(lua, -1);  // Stays valid: the table has it.
    lua_pop(lua, 1);
  }
  if (find_verify(wishes.verify) == nullptr) {
    raise(lua, "init_tls verify must be none, ca or full");
  }
  return wishes;
}

/// Calls no Lua. False: `problem` says why.
bool open_context(ConfigState& state, const TlsWishes* wishes, ProblemText& problem) {
  TlsContextPtr& tls = state.settings().tls;
  // Without wishes as memcached does it.
  TlsOptions options{.role = net::TlsRole::Client,
                     .verify = TlsVerify::None,
                     .min_version = net::TlsVersion::V13,
                     .sends_host_as_sni = false};
  if (wishes != nullptr) {
    options.ca = wishes->ca;
    options.cert = wishes->cert;
    options.key = wishes->key;
    options.sni = wishes->sni;
    options.verify = *find_verify(wishes->verify);
    options.min_version = net::TlsVersion::V12;
    options.sends_host_as_sni = true;
  }
  const bool has_files = !(options.ca.empty() && options.cert.empty());
  if (tls != nullptr && tls->options() == options && !has_files) {
    return true;  // Backends keep their connections.
  }
  auto opened = TlsContext::open(options, "backends of scripts", state.tls_monitor());
  if (const auto* const why = std::get_if<net::TlsProblem>(&opened)) {
    const std::size_t size = std::min(why->text.size(), problem.size() - 1);
    std::memcpy(problem.data(), why->text.data(), size);
    problem[size] = '\0';
    return false;
  }
  tls = std::get<TlsContextPtr>(opened);
  return true;
}

int init_tls(lua_State* lua) {
  TlsWishes wishes;
  const bool has_wishes = !lua_isnoneornil(lua, 1);
  if (has_wishes) {
    luaL_checktype(lua, 1, LUA_TTABLE);
    wishes = read_wishes(lua);
  }
  ProblemText problem{};
  if (!open_context(Vm::owner_of<ConfigState>(lua), has_wishes ? &wishes : nullptr, problem)) {
    return raise_format(lua, "cannot run mcp.init_tls: %s", problem.data());
  }
  return 0;
}

}  // namespace

void define_tls(lua_State* lua) {
  lua_pushcfunction(lua, &init_tls);
  lua_setfield(lua, -2, "init_tls");
}

}  // namespace kvferry::lua
