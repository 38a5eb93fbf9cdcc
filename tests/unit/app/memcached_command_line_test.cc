#include "app/memcached_command_line.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/memcached_option_table.h"

namespace kvferry::app {
namespace {

using Action = MemcachedCommandLine::Action;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

MemcachedCommandLine parse(const std::vector<std::string>& words) {
  return parse_memcached_command_line(words);
}

MemcachedOptions accepted(const std::vector<std::string>& words) {
  const MemcachedCommandLine line = parse(words);
  EXPECT_EQ(line.action, Action::Serve) << line.text;
  return line.options;
}

std::vector<std::string> places(const MemcachedOptions& options) {
  std::vector<std::string> texts;
  texts.reserve(options.listeners.size());
  for (const config::ListenerOptions& listener : options.listeners) {
    texts.push_back((listener.tag.empty() ? "" : listener.tag + "=") +
                    listener.endpoint.to_string());
  }
  return texts;
}

TEST(MemcachedCommandLine, DefaultsAreMemcacheds) {
  const MemcachedOptions options = accepted({});
  EXPECT_THAT(places(options), ElementsAre(":11211"));
  EXPECT_EQ(options.memory_bytes, std::uint64_t{64} << 20);
  EXPECT_EQ(options.item_bytes_max, std::uint64_t{1} << 20);
  EXPECT_EQ(options.workers, 4U);
  EXPECT_EQ(options.clients_max, 1024U);
  EXPECT_EQ(options.requests_per_turn, 20U);
  EXPECT_EQ(options.verbosity, 0U);
  EXPECT_TRUE(options.is_evicting && options.has_cas && options.allows_flush &&
              options.allows_dump && options.allows_watch);
  EXPECT_FALSE(options.allows_shutdown || options.is_daemon || options.traces_lua_memory ||
               options.counts_prefixes);
  EXPECT_THAT(options.ignored, IsEmpty());
  EXPECT_THAT(options.lua_files, IsEmpty());
  EXPECT_EQ(options.proxy_arg, std::nullopt);
}

TEST(MemcachedCommandLine, TakesShortOptionsInEveryForm) {
  const MemcachedOptions options =
      accepted({"-vv",   "-m128", "-I",   "2m",  "-t", "3",    "-c", "77",    "-R",
                "5",     "-MCF",  "-XWA", "-d",  "-u", "root", "-P", "/p",    "-Y",
                "users", "-e",    "kept", "-D|", "-U", "0",    "-B", "ascii", "word"});
  EXPECT_EQ(options.verbosity, 2U);
  EXPECT_EQ(options.memory_bytes, std::uint64_t{128} << 20);
  EXPECT_EQ(options.item_bytes_max, std::uint64_t{2} << 20);
  EXPECT_EQ(options.workers, 3U);
  EXPECT_EQ(options.clients_max, 77U);
  EXPECT_EQ(options.requests_per_turn, 5U);
  EXPECT_FALSE(options.is_evicting || options.has_cas || options.allows_flush ||
               options.allows_dump || options.allows_watch);
  EXPECT_TRUE(options.allows_shutdown && options.is_daemon && options.counts_prefixes);
  EXPECT_EQ(options.user, "root");
  EXPECT_EQ(options.pid_file, "/p");
  EXPECT_EQ(options.auth_file, "users");
  EXPECT_EQ(options.snapshot_file, "kept");
  EXPECT_EQ(options.prefix_delimiter, '|');
}

TEST(MemcachedCommandLine, TakesLongOptionsAndTheirBeginnings) {
  const MemcachedOptions options =
      accepted({"--port=7", "--memory-limit", "1g", "--max-item-size=512k", "--thr", "2",
                "--verbose", "--disable-ev"});
  EXPECT_THAT(places(options), ElementsAre(":7"));
  EXPECT_EQ(options.memory_bytes, std::uint64_t{1} << 30);
  EXPECT_EQ(options.item_bytes_max, std::uint64_t{512} << 10);
  EXPECT_EQ(options.workers, 2U);
  EXPECT_EQ(options.verbosity, 1U);
  EXPECT_FALSE(options.is_evicting);
}

TEST(MemcachedCommandLine, PlacesListeners) {
  struct Case {
    std::vector<std::string> words;
    std::vector<std::string> places;
  };
  const std::vector<Case> cases = {
      {{"-p", "5"}, {":5"}},
      {{"-p", "-1"}, {":0"}},
      {{"-l", "127.0.0.1"}, {"127.0.0.1:11211"}},
      {{"-l", "127.0.0.1", "-p", "5"}, {"127.0.0.1:5"}},
      {{"-l", "127.0.0.1:6,host:7", "-l", "[::1]:8", "-p", "5"},
       {"127.0.0.1:6", "host:7", "[::1]:8"}},
      {{"-l", "::1,[::2],*:9"}, {"[::1]:11211", "[::2]:11211", ":9"}},
      {{"-l", "tag[red]:h:1,tag_blue_:h:2"}, {"red=h:1", "blue=h:2"}},
      {{"-l", "proxy:tag[abcdefgh]:h:1,negotiatingx:h:2,notls:h:3"},
       {"abcdefgh=h:1", "h:2", "h:3"}},
      {{"-l", "proxyhost:4"}, {"proxyhost:4"}},
      {{"-s", "/s"}, {"/s"}},
      {{"-s", "/s", "-p", "5"}, {"/s", ":5"}},
      {{"-s", "/s", "-p", "0"}, {"/s"}},
      {{"-s", "/s", "-l", "h:5"}, {"h:5", "/s"}},
      {{"-l", "unix:/s,h"}, {"/s", "h:11211"}},
      {{"-l", "h,g:5", "-p", "0"}, {"g:5"}},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(places(accepted(one.words)), one.places) << testing::PrintToString(one.words);
  }
}

TEST(MemcachedCommandLine, GivesListenersBacklogAndMode) {
  const MemcachedOptions options = accepted({"-s", "/s", "-l", "h:1", "-a", "0660", "-b", "9"});
  ASSERT_EQ(options.listeners.size(), 2U);
  EXPECT_EQ(options.listeners[0].backlog, 9U);
  EXPECT_EQ(options.listeners[0].endpoint.mode, std::nullopt);
  EXPECT_EQ(options.listeners[1].endpoint.mode, 0660U);
}

TEST(MemcachedCommandLine, TakesExtendedOptions) {
  const MemcachedOptions options =
      accepted({"-o", "proxy_config=a.lua:routelib,proxy_arg=x=y:z,proxy_uring", "-o",
                "proxy_memprofile,,idle_timeout=30"});
  EXPECT_THAT(options.lua_files, ElementsAre("a.lua", "routelib"));
  EXPECT_EQ(options.proxy_arg, "x=y:z");
  EXPECT_TRUE(options.traces_lua_memory);
  EXPECT_EQ(options.io, config::IoEngine::Uring);
  EXPECT_EQ(options.idle_timeout_seconds, 30U);
}

TEST(MemcachedCommandLine, TakesTheLastEngine) {
  EXPECT_EQ(accepted({}).io, config::IoEngine::Auto);
  EXPECT_EQ(accepted({"-o", "io=epoll"}).io, config::IoEngine::Epoll);
  EXPECT_EQ(accepted({"-o", "io=uring", "-o", "io=auto"}).io, config::IoEngine::Auto);
  EXPECT_EQ(accepted({"-o", "proxy_uring,io=epoll"}).io, config::IoEngine::Epoll);
  EXPECT_EQ(accepted({"-o", "io=epoll,proxy_uring"}).io, config::IoEngine::Uring);
}

TEST(MemcachedCommandLine, NamesWhatHasNoEffect) {
  const MemcachedOptions options =
      accepted({"-kLr", "-f", "1.25", "-n48", "-o",
                "modern,no_lru_crawler,hashpower=20,slab_automove=2,slab_reassign,ext_path=/f:1g"});
  EXPECT_THAT(options.ignored,
              ElementsAre("-k", "-L", "-r", "-f", "-n", "-o modern", "-o no_lru_crawler",
                          "-o hashpower", "-o slab_automove", "-o slab_reassign", "-o ext_path"));
}

TEST(MemcachedCommandLine, RefusesAndSaysWhy) {
  struct Case {
    std::vector<std::string> words;
    std::string text;
  };
  const std::vector<Case> cases = {
      {{"-q"}, "unknown option '-q'. Allowed are -p/--port"},
      {{"-vq"}, "unknown option '-q'"},
      {{"--bogus"}, "unknown option '--bogus'. Allowed are"},
      {{"--dis"}, "'--dis' is ambiguous"},
      {{"--" + std::string("=x")}, "unknown option '--'"},
      {{"--verbose=1"}, "takes no value"},
      {{"--port"}, "'--port' needs a value"},
      {{"-p"}, "'-p' needs a value"},
      {{"-o", "bogus"}, "unknown suboption 'bogus' of -o. Allowed are io proxy_config"},
      {{"-o", "io=kqueue"}, "-o io must be auto, uring or epoll, found 'kqueue'"},
      {{"-o", "no_proxy_config=x"}, "unknown suboption 'no_proxy_config'"},
      {{"-o", "proxy_config"}, "proxy_config needs a value"},
      {{"-o", "proxy_config=:"}, "names no file"},
      {{"-o", "proxy_config=a,proxy_config=b"}, "twice"},
      {{"-o", "idle_timeout=x"}, "idle_timeout must be a number"},
      {{"-p", "65536"}, "-p must be a port"},
      {{"-p", "x"}, "-p must be a port"},
      {{"-p", "0"}, "nowhere to listen"},
      {{"-U", "11211"}, "UDP is not served"},
      {{"-a", "778"}, "-a must be an access mode"},
      {{"-a", "1000"}, "-a must be an access mode"},
      {{"-t", "0"}, "-t must be a number from 1 to 256"},
      {{"-t", "257"}, "-t must be a number from 1 to 256"},
      {{"-c", "0"}, "-c must be a number"},
      {{"-m", "0"}, "-m must be megabytes"},
      {{"-m", "x"}, "-m must be megabytes"},
      {{"-m", "99999999999999999999"}, "-m must be megabytes"},
      {{"-I", "1023"}, "-I must be a size from 1k to 1024m"},
      {{"-I", "1025m"}, "-I must be a size from 1k to 1024m"},
      {{"-m", "64", "-I", "33m"}, "at most half of -m"},
      {{"-D", "ab"}, "-D must be one character"},
      {{"-B", "binary", "-o", "proxy_config=a"}, "do not go together"},
      {{"-B", "x"}, "-B must be auto"},
      {{"-S"}, "say -Y FILE"},
      {{"-Z"}, "-o ssl_chain_cert=FILE"},
      {{"-Z", "-o", "ssl_chain_cert=x,ssl_verify_mode=4"}, "-o ssl_verify_mode must be 0 (none)"},
      {{"-l", ""}, "-l must be"},
      {{"-l", "h:"}, "-l must be"},
      {{"-l", "h:65536"}, "-l must be"},
      {{"-l", "[::1"}, "-l must be"},
      {{"-l", "[::1]x"}, "-l must be"},
      {{"-l", "tag[]:h:1"}, "-l must be"},
      {{"-l", "tag[abcdefghi]:h:1"}, "1 to 8 characters"},
      {{"-l", "tag_a:h:1"}, "-l must be"},
  };
  for (const Case& one : cases) {
    const MemcachedCommandLine line = parse(one.words);
    EXPECT_EQ(line.action, Action::Refuse) << testing::PrintToString(one.words);
    EXPECT_THAT(line.text, HasSubstr(one.text));
    EXPECT_TRUE(line.text.ends_with('\n'));
  }
}

TEST(MemcachedCommandLine, PrintsWhatIsAskedFor) {
  const MemcachedCommandLine help = parse({"-h"});
  EXPECT_EQ(help.action, Action::Print);
  for (const char* name : {"proxy_config", "ext_path", "unix-socket"}) {
    EXPECT_THAT(help.text, HasSubstr(name));
  }
  EXPECT_THAT(parse({"-V"}).text, testing::StartsWith("memcached 1.6.45"));
  EXPECT_EQ(parse({"--version"}).action, Action::Print);
  EXPECT_EQ(parse({"-i"}).action, Action::Print);
}

TEST(MemcachedCommandLine, HelpNamesEveryOptionThatHasAnEffect) {
  const std::string help = parse({"-h"}).text;
  for (const MemcachedOption& option : memcached_options()) {
    EXPECT_THAT(help, HasSubstr(std::string("-") + option.letter));
  }
}

}  // namespace
}  // namespace kvferry::app
