"""What docs/redis.md says is not served yet is answered as it says."""

import pytest

from support.kvferry import pool
from support.redis import request

NOT_HERE = b" is not available here\r\n"
REFUSED = b" is refused by the proxy (pool main)\r\n"


@pytest.fixture(name="client")
def fixture_client(kvferry, redis_server, redis_wire):
    servers = [redis_server(), redis_server()]
    return redis_wire(kvferry(pool("main", [server.port for server in servers], protocol="redis")).port())


@pytest.mark.parametrize("words, end", [
    (("SUBSCRIBE", "channel"), NOT_HERE), (("PSUBSCRIBE", "*"), NOT_HERE), (("WATCH", "k"), NOT_HERE), (("MONITOR",), NOT_HERE),
    (("SLOWLOG", "GET"), NOT_HERE), (("CLIENT", "TRACKING", "on"), NOT_HERE), (("WAIT", 0, 0), NOT_HERE), (("BLPOP", "k", 1), REFUSED),
], ids=lambda each: each[0] if isinstance(each, tuple) else "")
def test_what_is_not_served_is_told_and_does_no_harm(client, words, end):
    reply = client.command(*words)
    assert reply.startswith(b"-ERR kvferry: '") and reply.endswith(end), reply
    client.expect_in_step()


def test_scripts_that_a_server_has_not_got(client):
    assert client.command("EVALSHA", "a" * 40, 1, "k").startswith(b"-NOSCRIPT ")
    name = client.value("SCRIPT", "LOAD", "return KEYS[1]")
    client.send(b"".join(request("EVALSHA", name, 1, "%d" % number) for number in range(20)))
    assert [client.receive_reply() for _ in range(20)] == [b"$%d\r\n%d\r\n" % (len("%d" % number), number) for number in range(20)]
