// Texts that stand for a server: in statistics and logs, and on the ring.
//
// Threads:   pure functions; control thread, as they allocate.
#pragma once

#include <cstdint>
#include <string>

#include "pool/options.h"

namespace kvferry::pool {

/// Port that texts leave out, so that rings agree with those of old memcached clients.
inline constexpr std::uint16_t kPortLeftOut = 11211;

/// What people read: the name; without one host:port, the host alone when the port is 11211, or the
/// path of a Unix socket. Twemproxy's statistics use the same words.
std::string label_of(const ServerOptions& server);

/// What twemproxy sorts servers by and makes points from: as label_of, but the path of an unnamed
/// Unix socket is followed by a colon.
std::string point_label_of(const ServerOptions& server);

/// Libmemcached's text for the same: the path of an unnamed Unix socket is followed by ":0", as it
/// prints port 0.
std::string libmemcached_label_of(const ServerOptions& server);

/// Text of memcached's proxy, which knows no names: host and port as given, in the form of
/// `naming`.
std::string memcached_ring_label_of(const ServerOptions& server, RingNaming naming);

/// Sets label and point_label from the other members.
void fill_labels(ServerOptions& server);

}  // namespace kvferry::pool
