#include "front/binary_refusal.h"

#include <algorithm>

namespace kvferry::front {
namespace {

constexpr std::size_t kHeaderBytes = 24;
constexpr std::size_t kOpcodeAt = 1;
constexpr std::size_t kStatusAt = 7;       // Low byte; the high one is zero.
constexpr std::size_t kBodyLengthAt = 11;  // Low byte of four.
constexpr std::size_t kOpaqueAt = 12;
constexpr std::size_t kOpaqueBytes = 4;
constexpr char kResponseMagic = '\x81';
constexpr char kUnknownCommand = '\x81';
constexpr std::string_view kText = "Unknown command";

}  // namespace

std::string compose_binary_refusal(std::string_view bytes) {
  std::string response(kHeaderBytes, '\0');
  response[0] = kResponseMagic;
  if (bytes.size() > kOpcodeAt) {
    response[kOpcodeAt] = bytes[kOpcodeAt];
  }
  response[kStatusAt] = kUnknownCommand;
  response[kBodyLengthAt] = static_cast<char>(kText.size());
  const std::string_view opaque = bytes.substr(std::min(bytes.size(), kOpaqueAt), kOpaqueBytes);
  std::copy(opaque.begin(), opaque.end(), response.begin() + kOpaqueAt);
  response += kText;
  return response;
}

}  // namespace kvferry::front
