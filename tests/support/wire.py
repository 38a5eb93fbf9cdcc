"""A raw client: bytes out, bytes in, compared exactly."""

import re
import select
import socket
import ssl
import struct
import time

REPLY_SECONDS = 5.0
LARGE_BYTES = 1 << 18  # Above it a reply is taken whole before it is compared.
PLACEHOLDER = b"{n}"


def pattern_of(template: bytes):
    """A reply in which every {n} stands for any number."""
    return re.compile(b"([0-9]+)".join(re.escape(part) for part in template.split(PLACEHOLDER)), re.DOTALL)


def shorten(data: bytes, limit: int = 300) -> str:
    text = repr(data)
    return text if len(text) <= limit else "%s ... %s (%d bytes)" % (text[:limit // 2], text[-limit // 2:], len(data))


def difference(wanted: bytes, got: bytes) -> str:
    """Both, and where they begin to differ."""
    place = next((index for index, pair in enumerate(zip(wanted, got)) if pair[0] != pair[1]), min(len(wanted), len(got)))
    around = slice(max(0, place - 40), place + 40)
    return "wanted %s, got %s; from byte %d on: wanted %r, got %r" % (
        shorten(wanted), shorten(got), place, wanted[around], got[around])


class Wire:
    """One connection to 127.0.0.1:port."""

    def __init__(self, port: int, seconds: float = REPLY_SECONDS, receive_buffer=None):
        self.seconds = seconds
        self.unread = b""
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(seconds)
        self.socket.connect(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def reset(self):
        """Ends the connection with RST, as a crashed client's kernel does."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def half_close(self):
        self.socket.shutdown(socket.SHUT_WR)

    def send(self, data: bytes):
        self.socket.sendall(data)

    def _receive(self, end: float) -> bool:
        """Waits for more bytes until `end`; False when none came, or the peer has closed."""
        left = end - time.monotonic()
        if left <= 0 or not select.select([self.socket], [], [], left)[0]:
            return False
        piece = self.socket.recv(1 << 20)
        self.unread += piece
        return piece != b""

    def receive(self, size: int) -> bytes:
        """Exactly `size` bytes."""
        parts, have = [self.unread], len(self.unread)
        self.unread = b""
        end = time.monotonic() + self.seconds
        while have < size:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.socket], [], [], left)[0]:
                break
            piece = self.socket.recv(1 << 20)
            if piece == b"":
                break
            parts.append(piece)
            have += len(piece)
        data = b"".join(parts)
        assert len(data) >= size, "wanted %d bytes, got %s" % (size, shorten(data))
        self.unread = data[size:]
        return data[:size]

    def receive_line(self) -> bytes:
        """Up to and with the next line end."""
        end = time.monotonic() + self.seconds
        while b"\n" not in self.unread:
            assert self._receive(end), "wanted a line, got %s" % shorten(self.unread)
        line, _, self.unread = self.unread.partition(b"\n")
        return line + b"\n"

    def receive_all(self) -> bytes:
        """Everything until the peer closes."""
        end = time.monotonic() + self.seconds
        while self._receive(end):
            pass
        data, self.unread = self.unread, b""
        return data

    def expect(self, reply: bytes):
        """The next bytes are `reply`, in which {n} stands for any number."""
        if PLACEHOLDER in reply:
            self._expect_pattern(reply)
            return
        end = time.monotonic() + self.seconds
        if len(reply) > LARGE_BYTES:
            got = self.receive(len(reply))
            assert got == reply, "wanted %s, got %s" % (shorten(reply), shorten(got))
            return
        while len(self.unread) < len(reply) and reply.startswith(self.unread) and self._receive(end):
            pass
        got = self.unread[:len(reply)]
        assert got == reply, difference(reply, self.unread)
        self.unread = self.unread[len(reply):]

    def _expect_pattern(self, template: bytes):
        pattern = pattern_of(template)
        end = time.monotonic() + self.seconds
        while True:
            found = pattern.match(self.unread)
            if found:
                self.unread = self.unread[found.end():]
                return
            assert self._receive(end), "wanted %s, got %s" % (shorten(template), shorten(self.unread))

    def ask(self, request: bytes, reply: bytes):
        self.send(request)
        self.expect(reply)

    def ask_line(self, request: bytes) -> bytes:
        self.send(request)
        return self.receive_line()

    def expect_in_step(self):
        """Nothing is left over: the next reply is the one to our next request."""
        self.ask(b"mn\r\n", b"MN\r\n")

    def expect_silence(self, seconds: float = 0.2):
        assert not self._receive(time.monotonic() + seconds), "unasked bytes: %s" % shorten(self.unread)

    def expect_closed(self, reply: bytes = b""):
        """The peer sends `reply` and closes."""
        try:
            data = self.receive_all()
        except ConnectionResetError:
            data, self.unread = self.unread, b""
        assert data == reply, "wanted %s and the end, got %s" % (shorten(reply), shorten(data))
        self.socket.settimeout(1)
        try:
            assert self.socket.recv(1) == b"", "still open"
        except ConnectionResetError:
            pass
        except socket.timeout:
            raise AssertionError("the connection is still open") from None


class TlsWire(Wire):
    """The same over TLS; `context` is an ssl.SSLContext, `name` what the server's certificate is to be for."""

    def __init__(self, port: int, context: ssl.SSLContext, name: str = "localhost", **options):
        super().__init__(port, **options)
        self.socket = context.wrap_socket(self.socket, server_hostname=name)

    def _receive(self, end: float) -> bool:
        """As in Wire; but bytes may wait inside of the TLS layer, where select() does not see them."""
        if self.socket.pending() == 0:
            return super()._receive(end)
        self.unread += self.socket.recv(1 << 20)
        return True

    def receive(self, size: int) -> bytes:
        end = time.monotonic() + self.seconds
        parts, have = [self.unread], len(self.unread)
        while have < size:
            self.unread = b""
            assert self._receive(end), "wanted %d bytes, got %d" % (size, have)
            parts.append(self.unread)
            have += len(self.unread)
        data = b"".join(parts)
        self.unread = data[size:]
        return data[:size]


def storage(command: str, key: str, value: bytes, flags: int = 0, ttl: int = 0, tail: str = "") -> bytes:
    """A classic storage request."""
    line = "%s %s %d %d %d%s\r\n" % (command, key, flags, ttl, len(value), " " + tail if tail else "")
    return line.encode() + value + b"\r\n"


def value_reply(key: str, value: bytes, flags: int = 0) -> bytes:
    """The block of one hit."""
    return ("VALUE %s %d %d\r\n" % (key, flags, len(value))).encode() + value + b"\r\n"
