#include "net/tls_context.h"

#include <chrono>
#include <fstream>
#include <sstream>
#include <string>
#include <variant>

#include <gtest/gtest.h>
#include <openssl/pem.h>

#include "tests/support/certificates.h"
#include "tests/support/temp_folder.h"

namespace kvferry::net {
namespace {

using test::CertificateFiles;

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

class TlsContextTest : public testing::Test {
 protected:
  static std::variant<TlsContextPtr, TlsProblem> open(const TlsOptions& options) {
    return TlsContext::open(options, "test", nullptr);
  }
  static void expect_problem(const TlsOptions& options, TlsField field, const std::string& part) {
    const auto opened = open(options);
    ASSERT_TRUE(std::holds_alternative<TlsProblem>(opened)) << part;
    const auto& problem = std::get<TlsProblem>(opened);
    EXPECT_EQ(problem.field, field) << problem.text;
    EXPECT_NE(problem.text.find(part), std::string::npos) << problem.text;
  }
  static void expect_good(const TlsOptions& options) {
    const auto opened = open(options);
    EXPECT_TRUE(std::holds_alternative<TlsContextPtr>(opened)) << std::get<TlsProblem>(opened).text;
  }
  TlsOptions server() const { return {.cert = files_.cert, .key = files_.key}; }

  test::TempFolder folder_;
  test::TestAuthority authority_{folder_.path()};
  CertificateFiles files_ = authority_.issue("server");
};

TEST_F(TlsContextTest, TakesCertificateAndKey) {
  expect_good(server());
}

TEST_F(TlsContextTest, TakesBothFromOneFile) {
  folder_.write("both.pem", text_of(files_.cert) + text_of(files_.key));
  expect_good({.cert = folder_.file("both.pem")});
}

TEST_F(TlsContextTest, TakesAKeyInDerForm) {
  std::FILE* file = std::fopen(files_.key.c_str(), "r");
  EVP_PKEY* key = PEM_read_PrivateKey(file, nullptr, nullptr, nullptr);
  std::fclose(file);
  file = std::fopen(folder_.file("key.der").c_str(), "w");
  ASSERT_EQ(i2d_PrivateKey_fp(file, key), 1);
  std::fclose(file);
  EVP_PKEY_free(key);
  TlsOptions options = server();
  options.key = folder_.file("key.der");
  expect_problem(options, TlsField::Key, "cannot use the private key");
  options.key_format = TlsKeyFormat::Der;
  expect_good(options);
}

TEST_F(TlsContextTest, KnowsHowLongTheCertificateIsValid) {
  const auto files = authority_.issue("short", {.valid_from_s = -100, .valid_to_s = 200});
  const auto opened = open({.cert = files.cert, .key = files.key});
  const auto& context = *std::get<TlsContextPtr>(opened);
  EXPECT_EQ(context.not_after() - context.not_before(), std::chrono::seconds(300));
  const auto left = context.not_after() - std::chrono::system_clock::now();
  EXPECT_GT(left, std::chrono::seconds(100));
  EXPECT_LE(left, std::chrono::seconds(201));
}

TEST_F(TlsContextTest, ClientsNeedNoFiles) {
  expect_good({.role = TlsRole::Client});
  expect_good({.role = TlsRole::Client, .verify = TlsVerify::Full});
  expect_good({.role = TlsRole::Client, .cert = files_.cert, .key = files_.key});
}

TEST_F(TlsContextTest, SaysWhichFileIsWrong) {
  const std::string gone = folder_.file("gone.pem");
  folder_.write("text.pem", "no certificate at all\n");
  TlsOptions options = server();
  options.cert = gone;
  expect_problem(options, TlsField::Cert, "cannot read '" + gone + "': No such file");
  options.cert = folder_.path();
  expect_problem(options, TlsField::Cert, "cannot use the certificate");
  options.cert = folder_.file("text.pem");
  expect_problem(options, TlsField::Cert, "PEM form: no start line");
  options.cert.clear();
  options.key.clear();
  expect_problem(options, TlsField::Cert, "needs a certificate");
  options = server();
  options.key = gone;
  expect_problem(options, TlsField::Key, "cannot read '" + gone);
  options.key = folder_.file("text.pem");
  expect_problem(options, TlsField::Key, "cannot use the private key");
  options.key.clear();
  expect_problem(options, TlsField::Key, "cannot use the private key");
  options = server();
  options.ca = gone;
  expect_problem(options, TlsField::Ca, "cannot read '" + gone);
  options.ca = folder_.file("text.pem");
  expect_problem(options, TlsField::Ca, "cannot use the authorities");
}

TEST_F(TlsContextTest, RefusesTheKeyOfAnotherCertificate) {
  TlsOptions options = server();
  options.key = authority_.issue("other").key;
  expect_problem(options, TlsField::Key, "does not belong to the certificate in");
}

TEST_F(TlsContextTest, RefusesAKeyWithoutItsCertificate) {
  expect_problem({.role = TlsRole::Client, .key = files_.key}, TlsField::Key, "certificate only");
}

TEST_F(TlsContextTest, AsksNobodyForThePasswordOfAKey) {
  std::FILE* file = std::fopen(files_.key.c_str(), "r");
  EVP_PKEY* key = PEM_read_PrivateKey(file, nullptr, nullptr, nullptr);
  std::fclose(file);
  file = std::fopen(folder_.file("locked.key").c_str(), "w");
  ASSERT_EQ(
      PEM_write_PrivateKey(file, key, EVP_aes_128_cbc(),
                           reinterpret_cast<const unsigned char*>("word"), 4, nullptr, nullptr),
      1);
  std::fclose(file);
  EVP_PKEY_free(key);
  TlsOptions options = server();
  options.key = folder_.file("locked.key");
  expect_problem(options, TlsField::Key, "without a password");
}

TEST_F(TlsContextTest, RefusesCiphersThatNobodyKnows) {
  TlsOptions options = server();
  options.ciphers = "NO-SUCH-CIPHER";
  expect_problem(options, TlsField::Ciphers, "'NO-SUCH-CIPHER'");
  options.ciphers = "NO-SUCH-CIPHER:ECDHE-ECDSA-AES128-GCM-SHA256";
  expect_good(options);
}

TEST(TlsOptions, AreEqualWhenNothingDiffers) {
  const TlsOptions options{.cert = "a", .key = "b", .verify = TlsVerify::Require};
  TlsOptions other = options;
  EXPECT_EQ(options, other);
  other.min_version = TlsVersion::V13;
  EXPECT_NE(options, other);
}

TEST(TlsFailureKind, EachHasItsWord) {
  std::string words;
  for (std::size_t i = 0; i < kTlsFailureKinds; ++i) {
    words += std::string(tls_failure_name(static_cast<TlsFailureKind>(i))) + " ";
  }
  EXPECT_EQ(words, "verify alert version not_tls timeout closed protocol ");
}

}  // namespace
}  // namespace kvferry::net
