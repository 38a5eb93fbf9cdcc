// Certificates for tests, made when they are needed: an authority, and what it signs.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/check.h"

namespace kvferry::test {

/// The paths of a certificate and of its key.
struct CertificateFiles {
  std::string cert;
  std::string key;
};

struct CertificateWish {
  std::string common_name = "server.test";
  std::string alt_names = "DNS:server.test,IP:127.0.0.1";  // Empty: none.
  long valid_from_s = -3600;                               // Relative to now.
  long valid_to_s = 90L * 86400;
};

class TestAuthority {
 public:
  /// Files are made in `folder`, which outlives this.
  explicit TestAuthority(std::string folder, const std::string& name = "test authority")
      : folder_(std::move(folder)), key_(make_key()) {
    certificate_ = make(CertificateWish{.common_name = name, .alt_names = {}}, *key_, nullptr);
    path_ = folder_ + "/" + name + ".pem";
    write(path_, [&](std::FILE* file) { return PEM_write_X509(file, certificate_.get()); });
  }

  const std::string& path() const { return path_; }

  /// A certificate with a key of its own, in files called after `name`.
  CertificateFiles issue(const std::string& name, const CertificateWish& wish = {}) const {
    const KeyPtr key = make_key();
    const CertificatePtr certificate = make(wish, *key, this);
    CertificateFiles files{folder_ + "/" + name + ".crt", folder_ + "/" + name + ".key"};
    write(files.cert, [&](std::FILE* file) { return PEM_write_X509(file, certificate.get()); });
    write(files.key, [&](std::FILE* file) {
      return PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    });
    return files;
  }

 private:
  struct Free {
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
    void operator()(X509* certificate) const { X509_free(certificate); }
  };
  using KeyPtr = std::unique_ptr<EVP_PKEY, Free>;
  using CertificatePtr = std::unique_ptr<X509, Free>;

  static KeyPtr make_key() { return KeyPtr(EVP_EC_gen("P-256")); }

  template <typename Write>
  static void write(const std::string& path, Write write_to) {
    std::FILE* const file = std::fopen(path.c_str(), "w");
    KVF_CHECK(file != nullptr && write_to(file) == 1);
    std::fclose(file);
  }

  static void add_extension(X509& certificate, X509& issuer, int kind, const char* text) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, &issuer, &certificate, nullptr, nullptr, 0);
    X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, kind, text);
    KVF_CHECK(extension != nullptr);
    X509_add_ext(&certificate, extension, -1);
    X509_EXTENSION_free(extension);
  }

  /// Signed by `authority`, or by itself when that is null.
  static CertificatePtr make(const CertificateWish& wish, EVP_PKEY& key,
                             const TestAuthority* authority) {
    static long serial = 1;
    CertificatePtr made(X509_new());
    X509& certificate = *made;
    X509& issuer = authority == nullptr ? certificate : *authority->certificate_;
    X509_set_version(&certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(&certificate), serial++);
    X509_gmtime_adj(X509_getm_notBefore(&certificate), wish.valid_from_s);
    X509_gmtime_adj(X509_getm_notAfter(&certificate), wish.valid_to_s);
    X509_set_pubkey(&certificate, &key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(&certificate), "CN", MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(wish.common_name.c_str()), -1,
                               -1, 0);
    X509_set_issuer_name(&certificate, X509_get_subject_name(&issuer));
    if (authority == nullptr) {
      add_extension(certificate, issuer, NID_basic_constraints, "critical,CA:TRUE");
    }
    if (!wish.alt_names.empty()) {
      add_extension(certificate, issuer, NID_subject_alt_name, wish.alt_names.c_str());
    }
    KVF_CHECK(X509_sign(&certificate, authority == nullptr ? &key : authority->key_.get(),
                        EVP_sha256()) > 0);
    return made;
  }

  std::string folder_;
  KeyPtr key_;
  CertificatePtr certificate_;
  std::string path_;
};

}  // namespace kvferry::test
