#include "app/memcached_mode.h"

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <grp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pwd.h>
#include <sstream>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>
#include <variant>

#include "app/memcached_command_line.h"
#include "app/server.h"
#include "net/socket.h"
#include "pool/mcp_failure.h"

namespace kvferry::app {
namespace {

/// Requests of one client that are started in one turn, as a multiple of -R: there they are those
/// with values, here they are all.
constexpr std::uint32_t kTurnsPerLimit = 16;

bool has_ipv6() {
  const net::Fd probe(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_any;
  return probe.get() >= 0 &&
         bind(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

/// The addresses of `host` as text.
std::vector<std::string> addresses_of(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* list = nullptr;
  std::vector<std::string> found;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &list) != 0) {
    return found;
  }
  for (const addrinfo* each = list; each != nullptr; each = each->ai_next) {
    char text[NI_MAXHOST];
    if (getnameinfo(each->ai_addr, each->ai_addrlen, text, sizeof(text), nullptr, 0,
                    NI_NUMERICHOST) == 0) {
      found.emplace_back(text);
    }
  }
  freeaddrinfo(list);
  return found;
}

std::vector<std::string> hosts_of(const config::Endpoint& endpoint) {
  if (endpoint.is_unix() || net::Address::from_ip(endpoint.host, endpoint.port)) {
    return {endpoint.host};
  }
  if (!endpoint.host.empty()) {
    return addresses_of(endpoint.host);
  }
  std::vector<std::string> hosts{"0.0.0.0"};
  // With any free port each family would get another one, so only one is listened on.
  if (endpoint.port != 0 && has_ipv6()) {
    hosts.emplace_back("::");
  }
  return hosts;
}

base::LogLevel log_level_of(std::uint32_t verbosity) {
  return verbosity == 0   ? base::LogLevel::Notice
         : verbosity == 1 ? base::LogLevel::Info
                          : base::LogLevel::Debug;
}

/// Becomes `user` when root started us. A value says why that cannot be.
std::string become(const std::string& user) {
  if (user.empty() || geteuid() != 0) {
    return {};
  }
  const passwd* const entry = getpwnam(user.c_str());  // NOLINT(concurrency-mt-unsafe): no thread
  if (entry == nullptr) {
    return "there is no user '" + user + "'";
  }
  if (entry->pw_uid == 0) {
    return {};
  }
  if (setgroups(0, nullptr) != 0 || setgid(entry->pw_gid) != 0 || setuid(entry->pw_uid) != 0) {
    return "cannot become user '" + user + "'";
  }
  return {};
}

std::string_view environment(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): no thread yet
  return value == nullptr ? std::string_view{} : std::string_view(value);
}

void take_test_hooks(ServerOptions& server) {
  server.has_test_hooks = environment("KVFERRY_TEST_HOOKS") == "1";
  if (server.has_test_hooks) {
    const std::string_view count = environment("KVFERRY_TEST_FAIL_ALLOCATION");
    const char* const begin = count.data();
    std::from_chars(begin, begin + count.size(), server.failing_allocation);
  }
}

void let_scripts_decide(front::ServiceOptions& service) {
  service.words = memcache::ErrorWords::Proxy;
  // Scripts see requests whole, and backends judge their lines.
  service.parser.value_bytes_max = memcache::kValueBytesMax;
  service.parser.stream_bytes_min = memcache::kValueBytesMax;
  service.parser.close_on_long_line = false;
  service.judges_lines = false;
  service.serves_binary = false;  // Hooks see lines.
  service.cut_line = pool::kMcpFailureLine;
}

int fail(const std::string& text) {
  static_cast<void>(std::fprintf(stderr, "kvferry: %s\n", text.c_str()));
  return 1;
}

}  // namespace

base::Result<std::vector<config::ListenerOptions>> resolve_listeners(
    const std::vector<config::ListenerOptions>& listeners) {
  std::vector<config::ListenerOptions> resolved;
  for (const config::ListenerOptions& listener : listeners) {
    const std::vector<std::string> hosts = hosts_of(listener.endpoint);
    if (hosts.empty()) {
      return base::Error(base::ErrorCode::NotFound,
                         "cannot listen on '" + listener.endpoint.host + "': unknown host");
    }
    for (const std::string& host : hosts) {
      resolved.push_back(listener);
      resolved.back().endpoint.host = host;
    }
  }
  return resolved;
}

config::Model memcached_model(const MemcachedOptions& options) {
  config::Model model;
  model.process.workers = options.workers;
  model.process.store.memory_bytes = options.memory_bytes;
  model.process.store.item_bytes_max = options.item_bytes_max;
  model.process.store.snapshot = options.snapshot_file;
  // memcached begins anew when it cannot use what it finds.
  model.process.store.on_bad_snapshot = config::OnBadSnapshot::StartEmpty;
  model.process.log.level = log_level_of(options.verbosity);
  model.process.io = options.io;
  config::PoolConfig pool;
  pool.name = "store";
  pool.options.name = "store";
  pool.protocol = config::PoolProtocol::Store;
  pool.client_idle_timeout = base::Seconds(options.idle_timeout_seconds);
  pool.listeners = options.listeners;
  for (config::ListenerOptions& listener : pool.listeners) {
    listener.protocol = config::ListenerProtocol::Memcache;  // As memcached, which has no other.
  }
  model.pools.push_back(std::move(pool));
  return model;
}

void adjust_listeners(const MemcachedOptions& options,
                      const std::shared_ptr<const front::Credentials>& credentials,
                      std::vector<ListenerPlan>& listeners) {
  for (ListenerPlan& listener : listeners) {
    listener.service.credentials = credentials;
    listener.service.allows_watch = options.allows_watch;
    listener.service.quits_with_words = true;
    listener.service.serves_text = options.protocol != ClientProtocol::Binary;
    listener.service.serves_binary = options.protocol != ClientProtocol::Ascii;
    if (!options.lua_files.empty()) {
      let_scripts_decide(listener.service);
    }
    listener.service.requests_per_turn = options.requests_per_turn * kTurnsPerLimit;
  }
}

base::Result<std::shared_ptr<const front::Credentials>> read_credentials(const std::string& path) {
  const std::ifstream file(path);
  std::stringstream text;
  if (!file || !(text << file.rdbuf())) {
    return base::Error(base::ErrorCode::System, "cannot read the authentication file " + path);
  }
  auto credentials = front::Credentials::parse(text.str());
  if (!credentials) {
    return base::Error(base::ErrorCode::InvalidInput,
                       "authentication file " + path + " must have lines of user:password");
  }
  return std::make_shared<const front::Credentials>(*std::move(credentials));
}

int run_memcached(const std::vector<std::string>& arguments) {
  MemcachedCommandLine line = parse_memcached_command_line(arguments);
  if (line.action == MemcachedCommandLine::Action::Print) {
    static_cast<void>(std::fputs(line.text.c_str(), stdout));
    return 0;
  }
  if (line.action == MemcachedCommandLine::Action::Refuse) {
    static_cast<void>(std::fputs(line.text.c_str(), stderr));
    return 1;
  }
  MemcachedOptions& options = line.options;
  auto listeners = resolve_listeners(options.listeners);
  if (!listeners) {
    return fail(listeners.error().text());
  }
  options.listeners = std::move(listeners).value();
  net::TlsContextPtr tls;
  if (options.has_tls) {
    auto opened = net::TlsContext::open(options.tls, "-Z", nullptr);
    if (const auto* const problem = std::get_if<net::TlsProblem>(&opened)) {
      return fail("-Z: " + problem->text);
    }
    tls = std::get<net::TlsContextPtr>(std::move(opened));
    if (const std::string warning = tls->validity_warning(); !warning.empty()) {
      static_cast<void>(std::fprintf(stderr, "kvferry: warning: %s\n", warning.c_str()));
    }
  }
  if (const std::string problem = become(options.user); !problem.empty()) {
    return fail(problem);
  }
  if (options.is_daemon && daemon(1, 0) != 0) {
    return fail("cannot run in the background");
  }
  ServerOptions server;
  take_test_hooks(server);
  server.tls = std::move(tls);
  server.pid_file = options.pid_file;
  server.lua_files = options.lua_files;
  server.proxy_arg = options.proxy_arg;
  for (const std::string& option : options.ignored) {
    server.idle_flags += (server.idle_flags.empty() ? "" : ", ") + option;
  }
  server.memcached = std::move(options);
  return Server(std::move(server)).run();
}

}  // namespace kvferry::app
