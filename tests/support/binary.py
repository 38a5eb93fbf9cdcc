"""Packets of memcached's binary protocol, made and read by hand."""

import struct
from typing import NamedTuple

from support.wire import Wire

HEADER = struct.Struct(">BBHBBHIIQ")
REQUEST = 0x80
RESPONSE = 0x81

OPCODES = {
    "get": 0x00, "set": 0x01, "add": 0x02, "replace": 0x03, "delete": 0x04, "increment": 0x05, "decrement": 0x06, "quit": 0x07,
    "flush": 0x08, "getq": 0x09, "noop": 0x0A, "version": 0x0B, "getk": 0x0C, "getkq": 0x0D, "append": 0x0E, "prepend": 0x0F,
    "stat": 0x10, "setq": 0x11, "addq": 0x12, "replaceq": 0x13, "deleteq": 0x14, "incrementq": 0x15, "decrementq": 0x16,
    "quitq": 0x17, "flushq": 0x18, "appendq": 0x19, "prependq": 0x1A, "verbosity": 0x1B, "touch": 0x1C, "gat": 0x1D,
    "gatq": 0x1E, "sasl_list": 0x20, "sasl_auth": 0x21, "sasl_step": 0x22, "gatk": 0x23, "gatkq": 0x24,
}

OK, NOT_FOUND, EXISTS, TOO_LARGE, INVALID, NOT_STORED, NON_NUMERIC = range(7)
AUTH_ERROR = 0x20
UNKNOWN_COMMAND = 0x81
OUT_OF_MEMORY = 0x82
INTERNAL_ERROR = 0x84
NO_CREATION = 0xFFFFFFFF


class Packet(NamedTuple):
    """A response."""
    opcode: int
    status: int
    opaque: int
    cas: int
    extras: bytes
    key: bytes
    value: bytes


def request(name, key=b"", value=b"", extras=b"", opaque=0, cas=0) -> bytes:
    """`name` may be a number."""
    opcode = OPCODES.get(name, name)
    body = len(extras) + len(key) + len(value)
    return HEADER.pack(REQUEST, opcode, len(key), len(extras), 0, 0, body, opaque, cas) + extras + key + value


def storage(name, key, value, flags=0, exptime=0, **fields) -> bytes:
    """set, add, replace and their quiet kin."""
    return request(name, key, value, struct.pack(">II", flags, exptime), **fields)


def arith(name, key, delta=1, initial=0, exptime=0, **fields) -> bytes:
    return request(name, key, extras=struct.pack(">QQI", delta, initial, exptime), **fields)


def touch(name, key, exptime, **fields) -> bytes:
    """touch, gat and their kin."""
    return request(name, key, extras=struct.pack(">I", exptime), **fields)


def plain(user: str, password: str, **fields) -> bytes:
    return request("sasl_auth", b"PLAIN", ("\0%s\0%s" % (user, password)).encode(), **fields)


class BinaryClient(Wire):
    """A client on a socket that shows each response as it came."""

    def receive_packet(self) -> Packet:
        head = self.receive(HEADER.size)
        magic, opcode, key_size, extras_size, _, status, body_size, opaque, cas = HEADER.unpack(head)
        assert magic == RESPONSE, head
        body = self.receive(body_size)
        key_end = extras_size + key_size
        return Packet(opcode, status, opaque, cas, body[:extras_size], body[extras_size:key_end], body[key_end:])

    def call(self, *args, **fields) -> Packet:
        """One request of request() and its response."""
        self.send(request(*args, **fields))
        return self.receive_packet()

    def ask_packet(self, packet: bytes) -> Packet:
        self.send(packet)
        return self.receive_packet()

    def collect(self, packets: bytes, end=0xE0D) -> list:
        """All responses to `packets`, up to that to the noop that is sent behind them."""
        self.send(packets + request("noop", opaque=end))
        responses = []
        while True:
            packet = self.receive_packet()
            if packet.opaque == end:
                return responses
            responses.append(packet)

    def stats(self, what: bytes = b"") -> dict:
        self.send(request("stat", what))
        figures = {}
        while True:
            packet = self.receive_packet()
            assert packet.status == OK, packet
            if not packet.key:
                return figures
            figures[packet.key] = packet.value
