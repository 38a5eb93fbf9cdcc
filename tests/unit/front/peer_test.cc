#include "front/peer.h"

#include <gtest/gtest.h>

namespace kvferry::front {
namespace {

TEST(PeerAddress, LinesSayWhoCameAndWhyTheyLeft) {
  const PeerAddress v4 = PeerAddress::of(net::Address::from_ip("127.0.0.1", 500).value(), 7);
  EXPECT_EQ(conn_new_fields(v4), "type=conn_new rip=127.0.0.1 rport=500 transport=tcp cfd=7");
  EXPECT_EQ(conn_close_fields(v4, "normal"),
            "type=conn_close rip=127.0.0.1 rport=500 transport=tcp reason=normal cfd=7");
  const PeerAddress v6 = PeerAddress::of(net::Address::from_ip("::1", 5).value(), 8);
  EXPECT_EQ(conn_new_fields(v6), "type=conn_new rip=::1 rport=5 transport=tcp cfd=8");
  const PeerAddress local = PeerAddress::of(net::Address::from_path("/s").value(), 9);
  EXPECT_EQ(conn_new_fields(local), "type=conn_new rip=unix rport=0 transport=local cfd=9");
}

TEST(PeerAddress, TellsWhoIsOnThisMachine) {
  const auto is_local_ip = [](const char* ip) {
    return is_local(PeerAddress::of(net::Address::from_ip(ip, 500).value(), 7));
  };
  EXPECT_TRUE(is_local_ip("127.0.0.1"));
  EXPECT_TRUE(is_local_ip("127.9.8.7"));
  EXPECT_TRUE(is_local_ip("::1"));
  EXPECT_TRUE(is_local_ip("::ffff:127.0.0.1"));
  EXPECT_TRUE(is_local(PeerAddress::of(net::Address::from_path("/s").value(), 9)));
  EXPECT_FALSE(is_local_ip("128.0.0.1"));
  EXPECT_FALSE(is_local_ip("10.0.0.127"));
  EXPECT_FALSE(is_local_ip("::2"));
  EXPECT_FALSE(is_local_ip("::ffff:10.0.0.1"));
  EXPECT_FALSE(is_local_ip("fe80::1"));
}

}  // namespace
}  // namespace kvferry::front
