#include "front/binary_refusal.h"

#include <algorithm>
#include <array>

#include "front/binary_reply.h"

namespace kvferry::front {

std::string compose_binary_refusal(std::string_view bytes) {
  std::array<char, memcache_binary::kHeaderBytes> header{};
  bytes.copy(header.data(), header.size());
  using memcache_binary::Status;
  std::string response;
  compose_binary_text(response, static_cast<memcache_binary::Opcode>(header[1]),
                      memcache_binary::read_big_endian<std::uint32_t>({header.data() + 12, 4}),
                      Status::UnknownCommand, memcache_binary::status_text(Status::UnknownCommand));
  return response;
}

}  // namespace kvferry::front
