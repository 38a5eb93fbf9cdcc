#include "app/memcached_tls.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "app/memcached_command_line.h"

namespace kvferry::app {
namespace {

using net::TlsKeyFormat;
using net::TlsVerify;
using net::TlsVersion;

MemcachedOptions accepted(const std::vector<std::string>& words) {
  MemcachedCommandLine line = parse_memcached_command_line(words);
  EXPECT_EQ(line.action, MemcachedCommandLine::Action::Serve) << line.text;
  return line.options;
}

TEST(MemcachedTls, TakesEveryOption) {
  const MemcachedOptions options = accepted(
      {"-Z", "-o", "ssl_chain_cert=c,ssl_key=k,ssl_ca_cert=a,ssl_ciphers=X:Y,ssl_verify_mode=2",
       "-o", "ssl_keyformat=2,ssl_min_version=3,ssl_wbuf_size=32,ssl_session_cache", "-o",
       "ssl_kernel_tls"});
  EXPECT_TRUE(options.has_tls && options.wants_kernel_tls);
  EXPECT_EQ(options.tls, (net::TlsOptions{.role = net::TlsRole::Server,
                                          .cert = "c",
                                          .key = "k",
                                          .ca = "a",
                                          .ciphers = "X:Y",
                                          .key_format = TlsKeyFormat::Der,
                                          .verify = TlsVerify::Require,
                                          .min_version = TlsVersion::V13,
                                          .has_session_cache = true}));
  EXPECT_EQ(options.tls_buffer_kilobytes, 32U);
  EXPECT_EQ(options.listeners.at(0).tls, options.tls);
}

TEST(MemcachedTls, HasTheDefaultsOfMemcached) {
  const MemcachedOptions options = accepted({"-Z", "-o", "ssl_chain_cert=c"});
  EXPECT_EQ(
      options.tls,
      (net::TlsOptions{.cert = "c", .min_version = TlsVersion::V12, .has_session_cache = false}));
}

TEST(MemcachedTls, TakesNumbersAndTheWordsOfTheHelp) {
  const auto version = [](const std::string& text) {
    return accepted({"-o", "ssl_min_version=" + text}).tls.min_version;
  };
  EXPECT_EQ(version("0"), TlsVersion::V10);
  EXPECT_EQ(version("2"), TlsVersion::V12);
  EXPECT_EQ(version("tlsv1.3"), TlsVersion::V13);
  const auto format = [](const std::string& text) {
    return accepted({"-o", "ssl_keyformat=" + text}).tls.key_format;
  };
  EXPECT_EQ(format("1"), TlsKeyFormat::Pem);
  EXPECT_EQ(format("DER"), TlsKeyFormat::Der);
  const auto mode = [](const std::string& text) {
    return accepted({"-o", "ssl_verify_mode=" + text}).tls.verify;
  };
  EXPECT_EQ(mode("0"), TlsVerify::None);
  EXPECT_EQ(mode("1"), TlsVerify::Request);
  EXPECT_EQ(mode("2"), TlsVerify::Require);
  EXPECT_EQ(mode("3"), TlsVerify::Once);
}

TEST(MemcachedTls, RefusesOtherValues) {
  const struct {
    const char* option;
    const char* allowed;
  } table[] = {
      {"ssl_verify_mode=4", "0 (none), 1 (request), 2 (require) or 3 (once), found '4'"},
      {"ssl_verify_mode=x", "found 'x'"},
      {"ssl_keyformat=0", "1 (PEM) or 2 (DER), found '0'"},
      {"ssl_keyformat=3", "found '3'"},
      {"ssl_keyformat=ENGINE", "found 'ENGINE'"},
      {"ssl_min_version=4", "0 (tlsv1.0), 1 (tlsv1.1), 2 (tlsv1.2) or 3 (tlsv1.3), found '4'"},
      {"ssl_min_version=tlsv1.9", "found 'tlsv1.9'"},
      {"ssl_wbuf_size=x", "kilobytes, up to 1048576, found 'x'"},
      {"ssl_wbuf_size=1048577", "found '1048577'"},
      {"ssl_key", "-o ssl_key needs a value"},
  };
  for (const auto& row : table) {
    const MemcachedCommandLine line =
        parse_memcached_command_line(std::vector<std::string>{"-o", row.option});
    EXPECT_EQ(line.action, MemcachedCommandLine::Action::Refuse) << row.option;
    EXPECT_NE(line.text.find(row.allowed), std::string::npos) << line.text;
  }
}

TEST(MemcachedTls, IsForTcpUnlessTheAddressSaysNot) {
  const MemcachedOptions options =
      accepted({"-Z", "-o", "ssl_chain_cert=c", "-l", "a:1,notls:b:2,notls:tag_x_:c:3,unix:/s",
                "-l", "d", "-s", "/t"});
  std::vector<bool> is_tls;
  for (const config::ListenerOptions& listener : options.listeners) {
    is_tls.push_back(listener.tls.has_value());
  }
  EXPECT_EQ(is_tls, (std::vector<bool>{true, false, false, false, true, false}));
}

TEST(MemcachedTls, IsOffWithoutZ) {
  const MemcachedOptions options = accepted({"-o", "ssl_chain_cert=c,ssl_key=k", "-l", "a:1"});
  EXPECT_FALSE(options.has_tls);
  EXPECT_EQ(options.listeners.at(0).tls, std::nullopt);
}

TEST(MemcachedTls, SettingsReadAsThoseOfMemcached) {
  std::string out;
  append_tls_settings(MemcachedOptions{}, out);
  EXPECT_EQ(out,
            "STAT ssl_enabled no\r\nSTAT ssl_chain_cert (null)\r\nSTAT ssl_key (null)\r\n"
            "STAT ssl_verify_mode 0\r\nSTAT ssl_keyformat 1\r\nSTAT ssl_ciphers NULL\r\n"
            "STAT ssl_ca_cert NULL\r\nSTAT ssl_wbuf_size 16384\r\nSTAT ssl_session_cache no\r\n"
            "STAT ssl_kernel_tls no\r\nSTAT ssl_min_version tlsv1.2\r\n");
  out.clear();
  append_tls_settings(
      accepted({"-Z", "-o",
                "ssl_chain_cert=c,ssl_key=k,ssl_ca_cert=a,ssl_ciphers=X,ssl_verify_mode=3,"
                "ssl_keyformat=2,ssl_min_version=3,ssl_wbuf_size=1,ssl_session_cache,"
                "ssl_kernel_tls"}),
      out);
  EXPECT_EQ(out,
            "STAT ssl_enabled yes\r\nSTAT ssl_chain_cert c\r\nSTAT ssl_key k\r\n"
            "STAT ssl_verify_mode 3\r\nSTAT ssl_keyformat 2\r\nSTAT ssl_ciphers X\r\n"
            "STAT ssl_ca_cert a\r\nSTAT ssl_wbuf_size 1024\r\nSTAT ssl_session_cache yes\r\n"
            "STAT ssl_kernel_tls yes\r\nSTAT ssl_min_version tlsv1.3\r\n");
}

}  // namespace
}  // namespace kvferry::app
