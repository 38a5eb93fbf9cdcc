// The answer to clients that open with memcached's binary protocol where it is not served: on
// listeners whose requests Lua hooks decide on, and where the command line says -B ascii.
//
// A client of that protocol understands a binary "unknown command" and says so; without any answer
// it waits for ever. Source: memcached binary protocol, "Response header"; status 0x0081.
#pragma once

#include <string>
#include <string_view>

namespace kvferry::front {

/// A response to the request at the front of `bytes`, of which the first bytes may be all that
/// came: what is missing of its opcode and opaque counts as zero.
std::string compose_binary_refusal(std::string_view bytes);

}  // namespace kvferry::front
