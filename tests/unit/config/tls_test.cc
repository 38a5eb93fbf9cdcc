// The mappings `tls`: what they mean, and what is said about the files that they name.
#include <algorithm>
#include <fstream>
#include <string>
#include <sys/stat.h>

#include <gtest/gtest.h>

#include "config/loader.h"
#include "config/show.h"
#include "tests/support/certificates.h"
#include "tests/support/temp_folder.h"

namespace kvferry::config {
namespace {

using net::TlsOptions;
using net::TlsVerify;
using net::TlsVersion;

class ConfigTls : public testing::Test {
 protected:
  ConfigTls() { private_key(files_); }

  static void private_key(const test::CertificateFiles& files) { chmod(files.key.c_str(), 0600); }
  static std::string listener(const std::string& tls) {
    return "a:\n  dialect: kvferry\n  listen:\n    - address: 127.0.0.1:0\n      tls: " + tls +
           "\n  servers: [10.0.0.1:11211]\n";
  }
  static std::string pool(const std::string& tls, const std::string& server = "10.0.0.1:11211") {
    return "a:\n  dialect: kvferry\n  listen: 127.0.0.1:0\n  tls: " + tls + "\n  servers: [" +
           server + "]\n";
  }
  std::string good() const { return "{cert: " + files_.cert + ", key: " + files_.key + "}"; }
  /// Reads `text` from a file, so that the files it names are looked at.
  Loaded load_file(const std::string& text) const {
    folder_.write("t.yml", text);
    return load({folder_.file("t.yml")});
  }
  void expect_problem(const std::string& text, const std::string& code, const std::string& part,
                      std::uint32_t line, bool is_error = true) const {
    const Loaded loaded = load_file(text);
    ASSERT_EQ(loaded.problems.size(), 1U) << text << loaded.text();
    const Problem& problem = loaded.problems.front();
    EXPECT_EQ(problem.code, code) << loaded.text();
    EXPECT_NE(problem.message.find(part), std::string::npos) << loaded.text();
    EXPECT_EQ(problem.where.line, line) << loaded.text();
    EXPECT_EQ(problem.pool, "a");
    EXPECT_FALSE(problem.source_line.empty());
    EXPECT_EQ(loaded.model.has_value(), !is_error);
  }

  test::TempFolder folder_;
  test::TestAuthority authority_{folder_.path(), "ca"};
  test::CertificateFiles files_ = authority_.issue("server");
};

TEST_F(ConfigTls, OfAListenerHasItsValues) {
  const Loaded loaded = load_text(
      "t.yml", listener("{cert: a.crt, key: a.key, ca: ca.pem, verify: required, min_version: 1.3, "
                        "ciphers: ECDHE+AESGCM}"));
  ASSERT_TRUE(loaded.model) << loaded.text();
  EXPECT_EQ(loaded.model->pools[0].listeners[0].tls, (TlsOptions{.role = net::TlsRole::Server,
                                                                 .cert = "a.crt",
                                                                 .key = "a.key",
                                                                 .ca = "ca.pem",
                                                                 .ciphers = "ECDHE+AESGCM",
                                                                 .verify = TlsVerify::Require,
                                                                 .min_version = TlsVersion::V13}));
  EXPECT_EQ(loaded.model->pools[0].options.tls, std::nullopt);
}

TEST_F(ConfigTls, OfAPoolVerifiesUnlessItIsToldNotTo) {
  const Loaded loaded = load_text("t.yml", pool("{ca: ca.pem}"));
  ASSERT_TRUE(loaded.model) << loaded.text();
  EXPECT_EQ(loaded.model->pools[0].options.tls,
            (TlsOptions{.role = net::TlsRole::Client, .ca = "ca.pem", .verify = TlsVerify::Full}));
  const Loaded lax = load_text("t.yml", pool("{verify: none, sni: cache.example}"));
  ASSERT_TRUE(lax.model) << lax.text();
  EXPECT_EQ(lax.model->pools[0].options.tls->verify, TlsVerify::None);
  EXPECT_EQ(lax.model->pools[0].options.tls->sni, "cache.example");
}

TEST_F(ConfigTls, IsReadBackFromWhatIsShown) {
  for (const std::string& text :
       {listener("{cert: a.crt, key: \"a key\", ca: c, verify: optional, min_version: 1.3}"),
        pool("{ca: c, cert: x, key: y, sni: z, verify: ca, ciphers: \"A:B\"}"),
        pool("{verify: none}")}) {
    const Loaded first = load_text("t.yml", text);
    ASSERT_TRUE(first.model) << text << first.text();
    for (const YamlForm form : {YamlForm::Everything, YamlForm::Changes}) {
      const std::string shown = to_yaml(*first.model, form);
      const Loaded second = load_text("s.yml", shown);
      ASSERT_TRUE(second.model) << shown << second.text();
      EXPECT_EQ(*first.model, *second.model) << shown;
    }
  }
}

TEST_F(ConfigTls, ADifferenceIsOne) {
  const Loaded one = load_text("t.yml", listener("{cert: a, key: b}"));
  const Loaded other = load_text("t.yml", listener("{cert: a, key: c}"));
  EXPECT_NE(*one.model, *other.model);
}

TEST_F(ConfigTls, GoodFilesAreNoProblem) {
  EXPECT_EQ(load_file(listener(good())).text(), "");
  EXPECT_EQ(load_file(pool("{ca: " + authority_.path() + "}")).text(), "");
  EXPECT_EQ(load_file(pool("{verify: none}")).text(), "");
}

TEST_F(ConfigTls, FilesAreNotLookedAtInTexts) {
  EXPECT_EQ(load_text("t.yml", listener("{cert: gone, key: gone}")).text(), "");
}

TEST_F(ConfigTls, SaysWhereAFileIsMissing) {
  const std::string gone = folder_.file("gone");
  expect_problem(listener("\n        cert: " + gone + "\n        key: " + files_.key), "E-file",
                 "cannot read '" + gone + "': No such file or directory", 6);
  expect_problem(listener("\n        cert: " + files_.cert + "\n        key: " + gone), "E-file",
                 "cannot read '" + gone, 7);
  expect_problem(pool("{ca: " + gone + "}"), "E-file", "cannot read '" + gone, 4);
}

TEST_F(ConfigTls, SaysWhatIsWrongWithAFile) {
  folder_.write("text", "no certificate\n");
  const std::string text = folder_.file("text");
  expect_problem(listener("{cert: " + text + ", key: " + files_.key + "}"), "E-tls", "PEM form", 5);
  const test::CertificateFiles other = authority_.issue("other");
  private_key(other);
  expect_problem(listener("{cert: " + files_.cert + ", key: " + other.key + "}"), "E-tls",
                 "does not belong to the certificate", 5);
  expect_problem(pool("{ca: " + text + "}"), "E-tls", "cannot use the authorities", 4);
  expect_problem(listener("{cert: " + files_.cert + ", key: " + files_.key + ", ciphers: none}"),
                 "E-tls", "no cipher of the list 'none'", 5);
}

TEST_F(ConfigTls, WarnsOfCertificatesThatAreNotValid) {
  const auto text_of = [&](const std::string& name, long from, long to) {
    const test::CertificateFiles files =
        authority_.issue(name, {.valid_from_s = from, .valid_to_s = to});
    private_key(files);
    return listener("{cert: " + files.cert + ", key: " + files.key + "}");
  };
  constexpr long kDay = 86400;
  expect_problem(text_of("expired", -2 * kDay, -kDay), "W41", "has expired on", 5, false);
  expect_problem(text_of("future", kDay, 90 * kDay), "W41", "is not valid before", 5, false);
  expect_problem(text_of("soon", -kDay, 13 * kDay), "W41", "ends to be valid on", 5, false);
  EXPECT_EQ(load_file(text_of("fine", -kDay, 15 * kDay)).text(), "");
}

TEST_F(ConfigTls, WarnsOfAKeyThatOthersMayRead) {
  chmod(files_.key.c_str(), 0644);
  expect_problem(listener(good()), "W40", "others may read the private key", 5, false);
}

TEST_F(ConfigTls, NeedsWhatBelongsTogether) {
  expect_problem(listener("{}"), "E-missing", "'cert' is missing in 'tls'", 5);
  expect_problem(listener("{cert: a}"), "E-missing", "'key' is missing in 'tls'", 5);
  expect_problem(listener("{key: a}"), "E-missing", "'cert' is missing in 'tls'", 5);
  expect_problem(listener("{cert: a, key: b, verify: required}"), "E-missing",
                 "'ca' is missing in 'tls'", 5);
  expect_problem(pool("{key: a}"), "E-missing", "'cert' is missing in 'tls'", 4);
  expect_problem(pool("{cert: a}"), "E-missing", "'key' is missing in 'tls'", 4);
  expect_problem(pool("{verify: full}", "/run/a.sock"), "E-missing", "'sni' is missing", 4);
}

TEST_F(ConfigTls, HasNoOtherKeysAndValues) {
  expect_problem(listener("{cert: a, key: b, sni: c}"), "E-unknown", "unknown key 'sni'", 5);
  expect_problem(listener("true"), "E-type", "'tls' must be a mapping", 5);
  expect_problem(pool("{verify: required}"), "E-enum", "'verify' must be one of none, ca, full", 4);
  expect_problem(pool("{min_version: 1.1}"), "E-enum", "'min_version' must be one of 1.2, 1.3", 4);
}

TEST_F(ConfigTls, OfAStoreStandsAtItsListeners) {
  expect_problem("a:\n  protocol: store\n  listen: 127.0.0.1:0\n  tls: {verify: none}\n",
                 "E-unsupported", "'tls' of a pool is for its servers", 4);
}

}  // namespace
}  // namespace kvferry::config
