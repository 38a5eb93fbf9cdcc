#include "pool/server_label.h"

#include <gtest/gtest.h>

namespace kvferry::pool {
namespace {

ServerOptions server_at(std::string host, std::uint16_t port, std::string name = {}) {
  ServerOptions server;
  server.host = std::move(host);
  server.port = port;
  server.name = std::move(name);
  server.is_unix = port == 0;
  fill_labels(server);
  return server;
}

TEST(ServerLabel, IsTheNameWhenThereIsOne) {
  for (const ServerOptions& server :
       {server_at("10.0.0.1", 22121, "alpha"), server_at("/run/cache.sock", 0, "alpha")}) {
    EXPECT_EQ(server.label, "alpha");
    EXPECT_EQ(server.point_label, "alpha");
    EXPECT_EQ(libmemcached_label_of(server), "alpha");
  }
}

TEST(ServerLabel, LeavesOutPort11211AndNoOther) {
  EXPECT_EQ(server_at("10.0.0.1", 11210).label, "10.0.0.1:11210");
  EXPECT_EQ(server_at("10.0.0.1", 11211).label, "10.0.0.1");
  EXPECT_EQ(server_at("10.0.0.1", 11212).label, "10.0.0.1:11212");
  EXPECT_EQ(server_at("10.0.0.1", 11211).point_label, "10.0.0.1");
  EXPECT_EQ(libmemcached_label_of(server_at("10.0.0.1", 11211)), "10.0.0.1");
}

TEST(ServerLabel, MarksUnnamedSocketsOnTheRingOnly) {
  const ServerOptions server = server_at("/run/cache.sock", 0);
  EXPECT_EQ(server.label, "/run/cache.sock");
  EXPECT_EQ(server.point_label, "/run/cache.sock:");
  EXPECT_EQ(libmemcached_label_of(server), "/run/cache.sock:0");
}

TEST(ServerLabel, TakesHostAndPortForMemcachedsRing) {
  const ServerOptions server = server_at("10.0.0.1", 11211, "alpha");
  EXPECT_EQ(memcached_ring_label_of(server, RingNaming::Default), "10.0.0.1:11211");
  EXPECT_EQ(memcached_ring_label_of(server, RingNaming::Ketama), "10.0.0.1:11211");
  EXPECT_EQ(memcached_ring_label_of(server, RingNaming::Twemproxy), "10.0.0.1");
  EXPECT_EQ(memcached_ring_label_of(server, RingNaming::Evcache), "10.0.0.1/10.0.0.1:11211");
}

}  // namespace
}  // namespace kvferry::pool
