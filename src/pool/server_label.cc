#include "pool/server_label.h"

namespace kvferry::pool {
namespace {

std::string host_and_port(const ServerOptions& server) {
  return server.host + ':' + std::to_string(server.port);
}

std::string host_and_unusual_port(const ServerOptions& server) {
  return server.port == kPortLeftOut ? server.host : host_and_port(server);
}

}  // namespace

std::string label_of(const ServerOptions& server) {
  if (!server.name.empty()) {
    return server.name;
  }
  return server.is_unix ? server.host : host_and_unusual_port(server);
}

std::string point_label_of(const ServerOptions& server) {
  // Twemproxy takes the text up to the weight, and its length counts the colon.
  return server.name.empty() && server.is_unix ? server.host + ':' : label_of(server);
}

std::string libmemcached_label_of(const ServerOptions& server) {
  return server.name.empty() && server.is_unix ? server.host + ":0" : label_of(server);
}

std::string memcached_ring_label_of(const ServerOptions& server, RingNaming naming) {
  switch (naming) {
    case RingNaming::Default:
    case RingNaming::Ketama:
      return host_and_port(server);
    case RingNaming::Twemproxy:
      return host_and_unusual_port(server);
    case RingNaming::Evcache:
      return server.host + '/' + host_and_port(server);
  }
  return host_and_port(server);
}

void fill_labels(ServerOptions& server) {
  server.label = label_of(server);
  server.point_label = point_label_of(server);
}

}  // namespace kvferry::pool
