#include "config/secret.h"

#include <cerrno>
#include <cstdlib>
#include <fmt/format.h>
#include <string_view>
#include <sys/stat.h>

#include "config/text_file.h"

namespace kvferry::config {
namespace {

base::Result<std::string> checked(std::string text, std::string_view from) {
  if (text.empty() || text.size() > kSecretBytesMax) {
    return base::Error(base::ErrorCode::InvalidInput,
                       fmt::format("the secret from {} must have 1 to {} bytes, found {}", from,
                                   kSecretBytesMax, text.size()));
  }
  return text;
}

}  // namespace

base::Result<std::string> read_secret(const Secret& secret) {
  switch (secret.kind) {
    case Secret::Kind::None:
      return std::string();
    case Secret::Kind::Text:
      return secret.text;
    case Secret::Kind::Environment: {
      const char* value = std::getenv(secret.text.c_str());
      return checked(value == nullptr ? "" : value, "env:" + secret.text);
    }
    case Secret::Kind::File:
      break;
  }
  base::Result<std::string> text = read_text_file(secret.text, kSecretBytesMax + 2);
  if (!text) {
    return std::move(text).error();
  }
  for (const char end : {'\n', '\r'}) {
    if (text->ends_with(end)) {
      text->pop_back();
    }
  }
  return checked(std::move(*text), "file:" + secret.text);
}

bool is_exposed(const Secret& secret) {
  struct stat status{};
  return secret.kind == Secret::Kind::File && ::stat(secret.text.c_str(), &status) == 0 &&
         (status.st_mode & (S_IRWXG | S_IRWXO)) != 0;
}

}  // namespace kvferry::config
