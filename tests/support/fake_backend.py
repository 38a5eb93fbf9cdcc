"""A memcached that does what a test tells it to: lies, is late, stops in the middle of a value."""

import socket
import threading


class FakeBackend:
    """Listens on a free port; each connection runs `serve(connection)` in a thread of its own.

    `serve` gets a BackendConnection. When it returns, the connection is closed. Errors of sockets that the
    other side closed end the connection silently; anything else is kept in `failures`.
    """

    def __init__(self, serve):
        self._serve = serve
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self._listener.getsockname()[1]
        self.connections = []
        self.failures = []
        self._is_open = True
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def connection_count(self) -> int:
        return len(self.connections)

    def _accept(self):
        while self._is_open:
            try:
                accepted, _ = self._listener.accept()
            except OSError:
                return
            connection = BackendConnection(accepted, len(self.connections))
            self.connections.append(connection)
            threading.Thread(target=self._run, args=(connection,), daemon=True).start()

    def _run(self, connection):
        try:
            self._serve(connection)
        except (OSError, EOFError):
            pass
        except Exception as failure:  # pylint: disable=broad-except
            self.failures.append(failure)
        finally:
            connection.close()

    def stop(self):
        self._is_open = False
        try:
            # Wakes the thread in accept(), which close() alone does not.
            self._listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._listener.close()
        for connection in self.connections:
            connection.close()


class BackendConnection:
    """One connection from the proxy, as its backend sees it. `index` counts from 0."""

    def __init__(self, accepted, index: int):
        self.socket = accepted
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.index = index
        self.seen = []
        self._stream = accepted.makefile("rb")

    def read_request(self) -> bytes:
        """The next request: its line, and its value when it is a storage command."""
        line = self._stream.readline()
        if not line.endswith(b"\n"):
            raise EOFError
        request = line
        words = line.split()
        if words and words[0] in (b"set", b"add", b"replace", b"append", b"prepend", b"cas"):
            request += self._read(int(words[4]) + 2)
        elif words and words[0] == b"ms":
            request += self._read(int(words[2]) + 2)
        self.seen.append(request)
        return request

    def _read(self, size: int) -> bytes:
        data = self._stream.read(size)
        if len(data) < size:
            raise EOFError
        return data

    def read_line(self) -> bytes:
        line = self._stream.readline()
        if not line.endswith(b"\n"):
            raise EOFError
        return line

    def skip(self, size: int, piece: int = 1 << 16):
        """Reads and drops `size` bytes."""
        while size > 0:
            size -= len(self._read(min(size, piece)))

    def send(self, data: bytes):
        self.socket.sendall(data)

    def close(self):
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.socket.close()


def answer_get(request: bytes) -> bytes:
    """What a healthy server with a value for every key answers: the value of key k is "value-of-k"."""
    reply = b""
    for key in request.split()[1:]:
        value = b"value-of-" + key
        reply += b"VALUE %s 0 %d\r\n%s\r\n" % (key, len(value), value)
    return reply + b"END\r\n"


def serve_gets(connection):
    """A healthy server that knows only get, mn and version."""
    while True:
        request = connection.read_request()
        if request.startswith(b"get"):
            connection.send(answer_get(request))
        elif request.startswith(b"mn"):
            connection.send(b"MN\r\n")
        elif request.startswith(b"version"):
            connection.send(b"VERSION 1.6.18\r\n")
        else:
            connection.send(b"STORED\r\n")
