"""Conversations with a memcached, command by command, with the exact bytes of every reply.

They hold for memcached itself, for a pool in front of it and for the embedded store; the tests run them against all
three. Each dialogue starts from keys that it deletes first, so it can run any number of times. {n} in a reply
stands for any number.
"""

from dataclasses import dataclass

BINARY = bytes(range(256)) * 3 + b"\r\nEND\r\nVALUE x 0 1\r\n\0"


@dataclass
class Dialogue:
    """Steps are pairs of request and reply. `steady`: replies stay the same when it runs again."""

    name: str
    keys: list
    steps: list
    steady: bool = True
    # memcached 1.6.18 answers otherwise: an older text, or a fault that later versions mended.
    not_direct: bool = False

    @property
    def clear(self) -> bytes:
        return b"".join(b"delete %s noreply\r\n" % key for key in self.keys)

    @property
    def request(self) -> bytes:
        return self.clear + b"".join(request for request, _ in self.steps)

    @property
    def reply(self) -> bytes:
        return b"".join(reply for _, reply in self.steps)


def _dialogue(name, *steps, **options):
    """Keys of a dialogue are called a, b, c in its steps and name-a, name-b, name-c on the wire."""
    stem = name.replace(" ", "-").encode() + b"-"

    def spell(text):
        for letter in (b"a", b"b", b"c"):
            text = text.replace(b"<" + letter + b">", stem + letter)
        return text

    keys = [stem + letter for letter in (b"a", b"b", b"c")]
    return Dialogue(name, keys, [(spell(request), spell(reply)) for request, reply in steps], **options)


CLASSIC = [
    _dialogue("get", (b"get <a>\r\n", b"END\r\n"),
              (b"set <a> 7 0 5\r\nhello\r\n", b"STORED\r\n"),
              (b"get <a>\r\n", b"VALUE <a> 7 5\r\nhello\r\nEND\r\n"),
              (b"get <a> <b>\r\n", b"VALUE <a> 7 5\r\nhello\r\nEND\r\n"),
              (b"get <b> <a> <a>\r\n", b"VALUE <a> 7 5\r\nhello\r\n" * 2 + b"END\r\n")),
    _dialogue("gets", (b"set <a> 0 0 1\r\nx\r\n", b"STORED\r\n"),
              (b"gets <a>\r\n", b"VALUE <a> 0 1 {n}\r\nx\r\nEND\r\n"),
              (b"gets <b>\r\n", b"END\r\n"), steady=False),
    _dialogue("bare line feed", (b"set <a> 0 0 1\nx\r\n", b"STORED\r\n"), (b"get <a>\n", b"VALUE <a> 0 1\r\nx\r\nEND\r\n")),
    _dialogue("spaces", (b"set  <a>  0  0  1  \r\nx\r\n", b"STORED\r\n"), (b"get   <a>  \r\n", b"VALUE <a> 0 1\r\nx\r\nEND\r\n")),
    _dialogue("empty value", (b"set <a> 1 0 0\r\n\r\n", b"STORED\r\n"), (b"get <a>\r\n", b"VALUE <a> 1 0\r\n\r\nEND\r\n")),
    _dialogue("binary value", (b"set <a> 4294967295 0 %d\r\n%s\r\n" % (len(BINARY), BINARY), b"STORED\r\n"),
              (b"get <a>\r\n", b"VALUE <a> 4294967295 %d\r\n%s\r\nEND\r\n" % (len(BINARY), BINARY))),
    _dialogue("add", (b"add <a> 0 0 1\r\n1\r\n", b"STORED\r\n"), (b"add <a> 0 0 1\r\n2\r\n", b"NOT_STORED\r\n"),
              (b"get <a>\r\n", b"VALUE <a> 0 1\r\n1\r\nEND\r\n")),
    _dialogue("replace", (b"replace <a> 0 0 1\r\n1\r\n", b"NOT_STORED\r\n"), (b"set <a> 0 0 1\r\n1\r\n", b"STORED\r\n"),
              (b"replace <a> 5 0 2\r\n22\r\n", b"STORED\r\n"), (b"get <a>\r\n", b"VALUE <a> 5 2\r\n22\r\nEND\r\n")),
    _dialogue("append", (b"append <a> 0 0 1\r\n1\r\n", b"NOT_STORED\r\n"), (b"set <a> 3 0 1\r\n1\r\n", b"STORED\r\n"),
              (b"append <a> 9 0 2\r\n23\r\n", b"STORED\r\n"), (b"prepend <a> 9 0 1\r\n0\r\n", b"STORED\r\n"),
              (b"get <a>\r\n", b"VALUE <a> 3 4\r\n0123\r\nEND\r\n"), (b"prepend <b> 0 0 1\r\n0\r\n", b"NOT_STORED\r\n")),
    _dialogue("cas", (b"cas <a> 0 0 1 5\r\n1\r\n", b"NOT_FOUND\r\n"), (b"set <a> 0 0 1\r\n1\r\n", b"STORED\r\n"),
              (b"cas <a> 0 0 1 18446744073709551615\r\n2\r\n", b"EXISTS\r\n"),
              (b"get <a>\r\n", b"VALUE <a> 0 1\r\n1\r\nEND\r\n")),
    _dialogue("incr", (b"incr <a> 1\r\n", b"NOT_FOUND\r\n"), (b"set <a> 0 0 2\r\n10\r\n", b"STORED\r\n"),
              (b"incr <a> 5\r\n", b"15\r\n"), (b"decr <a> 7\r\n", b"8\r\n"), (b"get <a>\r\n", b"VALUE <a> 0 2\r\n8 \r\nEND\r\n"),
              (b"decr <a> 100\r\n", b"0\r\n"), (b"incr <a> 18446744073709551615\r\n", b"18446744073709551615\r\n"),
              (b"incr <a> 2\r\n", b"1\r\n"), (b"decr <b> 1\r\n", b"NOT_FOUND\r\n")),
    _dialogue("incr text", (b"set <a> 0 0 1\r\nx\r\n", b"STORED\r\n"),
              (b"incr <a> 1\r\n", b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"),
              (b"incr <a> x\r\n", b"CLIENT_ERROR invalid numeric delta argument\r\n")),
    _dialogue("touch", (b"touch <a> 100\r\n", b"NOT_FOUND\r\n"), (b"set <a> 0 0 1\r\nx\r\n", b"STORED\r\n"),
              (b"touch <a> 100\r\n", b"TOUCHED\r\n"), (b"mg <a> t\r\n", b"HD t{n}\r\n"),
              (b"touch <a> -1\r\n", b"TOUCHED\r\n"), (b"get <a>\r\n", b"END\r\n")),
    _dialogue("touch bad", (b"touch <a> x\r\n", b"CLIENT_ERROR invalid exptime argument\r\n")),
    _dialogue("gat", (b"gat 100 <a>\r\n", b"END\r\n"), (b"set <a> 2 0 1\r\nx\r\n", b"STORED\r\n"),
              (b"set <c> 3 0 1\r\ny\r\n", b"STORED\r\n"), (b"gat 100 <a>\r\n", b"VALUE <a> 2 1\r\nx\r\nEND\r\n"),
              (b"gat 100 <c> <b> <a>\r\n", b"VALUE <c> 3 1\r\ny\r\nVALUE <a> 2 1\r\nx\r\nEND\r\n"),
              (b"gats 0 <a>\r\n", b"VALUE <a> 2 1 {n}\r\nx\r\nEND\r\n"),
              (b"gats 50 <b> <c> <a>\r\n", b"VALUE <c> 3 1 {n}\r\ny\r\nVALUE <a> 2 1 {n}\r\nx\r\nEND\r\n"),
              (b"mg <a> t\r\n", b"HD t{n}\r\n"), steady=False),
    _dialogue("delete", (b"delete <a>\r\n", b"NOT_FOUND\r\n"), (b"set <a> 0 0 1\r\nx\r\n", b"STORED\r\n"),
              (b"delete <a>\r\n", b"DELETED\r\n"), (b"delete <a> 0\r\n", b"NOT_FOUND\r\n")),
    _dialogue("expired", (b"set <a> 0 -1 1\r\nx\r\n", b"STORED\r\n"), (b"get <a>\r\n", b"END\r\n")),
    _dialogue("noreply", (b"set <a> 0 0 1 noreply\r\n1\r\n", b""), (b"add <a> 0 0 1 noreply\r\n2\r\n", b""),
              (b"replace <b> 0 0 1 noreply\r\n2\r\n", b""), (b"append <a> 0 0 1 noreply\r\n2\r\n", b""),
              (b"prepend <a> 0 0 1 noreply\r\n0\r\n", b""), (b"cas <a> 0 0 1 18446744073709551615 noreply\r\n2\r\n", b""),
              (b"incr <a> 1 noreply\r\n", b""), (b"decr <b> 1 noreply\r\n", b""), (b"touch <a> 0 noreply\r\n", b""),
              (b"get <a>\r\n", b"VALUE <a> 0 3\r\n13 \r\nEND\r\n"), (b"delete <a> noreply\r\n", b""),
              (b"delete <a> noreply\r\n", b""), (b"get <a>\r\n", b"END\r\n")),
]

META = [
    _dialogue("mn", (b"mn\r\n", b"MN\r\n")),
    _dialogue("mg", (b"mg <a>\r\n", b"EN\r\n"), (b"mg <a> v\r\n", b"EN\r\n"), (b"set <a> 5 0 3\r\nabc\r\n", b"STORED\r\n"),
              (b"mg <a>\r\n", b"HD\r\n"), (b"mg <a> v\r\n", b"VA 3\r\nabc\r\n"),
              (b"mg <a> s v t f\r\n", b"VA 3 s3 t-1 f5\r\nabc\r\n"), (b"mg <a> k v Oxyz\r\n", b"VA 3 k<a> Oxyz\r\nabc\r\n"),
              (b"mg <a> q v\r\n", b"VA 3\r\nabc\r\n"), (b"mg <b> q v\r\n", b""), (b"mg <b> q\r\n", b""),
              (b"mg <a> h\r\n", b"HD h1\r\n"), (b"mg <a> c\r\n", b"HD c{n}\r\n"), steady=False),
    _dialogue("mg touch", (b"set <a> 0 0 1\r\nx\r\n", b"STORED\r\n"), (b"mg <a> T30 t v\r\n", b"VA 1 t30\r\nx\r\n")),
    _dialogue("mg vivify", (b"mg <a> N30 s v t\r\n", b"VA 0 s0 t{n} W\r\n\r\n"), (b"mg <a> N30 s v\r\n", b"VA 0 s0 Z\r\n\r\n")),
    _dialogue("ms", (b"ms <a> 2\r\nhi\r\n", b"HD\r\n"), (b"mg <a> v\r\n", b"VA 2\r\nhi\r\n"),
              (b"ms <a> 3 T90 F6\r\nabc\r\n", b"HD\r\n"), (b"mg <a> v f t\r\n", b"VA 3 f6 t{n}\r\nabc\r\n"),
              (b"ms <a> 1 k O12\r\nx\r\n", b"HD k<a> O12\r\n"), (b"ms <a> 1 q\r\ny\r\n", b""),
              (b"ms <a> 1 ME\r\nz\r\n", b"NS\r\n"), (b"ms <b> 1 MR\r\nz\r\n", b"NS\r\n"),
              (b"ms <a> 1 MA\r\nz\r\n", b"HD\r\n"), (b"ms <a> 1 MP\r\nx\r\n", b"HD\r\n"), (b"mg <a> v\r\n", b"VA 3\r\nxyz\r\n"),
              (b"ms <a> 1 C1\r\nz\r\n", b"EX\r\n"), (b"ms <b> 1 C1\r\nz\r\n", b"NF\r\n")),
    _dialogue("md", (b"md <a>\r\n", b"NF\r\n"), (b"ms <a> 1\r\nx\r\n", b"HD\r\n"), (b"md <a> C1\r\n", b"EX\r\n"),
              (b"md <a> I T30\r\n", b"HD\r\n"), (b"mg <a> v\r\n", b"VA 1 X W\r\nx\r\n"), (b"mg <a> v\r\n", b"VA 1 Z X\r\nx\r\n"),
              (b"md <a> k Oab\r\n", b"HD k<a> Oab\r\n"), (b"md <a> q\r\n", b"NF\r\n"), (b"ms <a> 1\r\nx\r\n", b"HD\r\n"),
              (b"md <a> q\r\n", b""), (b"mg <a>\r\n", b"EN\r\n")),
    _dialogue("ma", (b"ma <a>\r\n", b"NF\r\n"), (b"ma <a> N0 J13 v\r\n", b"VA 2\r\n13\r\n"), (b"ma <a>\r\n", b"HD\r\n"),
              (b"ma <a> v\r\n", b"VA 2\r\n15\r\n"), (b"ma <a> D10 v\r\n", b"VA 2\r\n25\r\n"), (b"ma <a> MD D5 v\r\n", b"VA 2\r\n20\r\n"),
              (b"ma <a> q\r\n", b""), (b"ma <b> q\r\n", b"NF\r\n"), (b"mg <a> v\r\n", b"VA 2\r\n21\r\n")),
    _dialogue("me", (b"me <a>\r\n", b"EN\r\n"), (b"set <a> 0 0 1\r\nx\r\n", b"STORED\r\n"),
              (b"me <a>\r\n", b"ME <a> exp=-1 la={n} cas={n} fetch=no cls={n} size={n}\r\n"), steady=False),
    _dialogue("base64 key", (b"ms AAEC 1 b\r\nx\r\n", b"HD\r\n"), (b"mg AAEC b v k\r\n", b"VA 1 kAAEC b\r\nx\r\n"),
              (b"mg AAEC v\r\n", b"EN\r\n"), (b"md AAEC b\r\n", b"HD\r\n"), (b"mg AAEC b v\r\n", b"EN\r\n")),
]

ERRORS = [
    _dialogue("unknown", (b"nonsense\r\n", b"ERROR\r\n"), (b"GET x\r\n", b"ERROR\r\n")),
    _dialogue("bad number", (b"set <a> x 0 1\r\n1\r\n", b"CLIENT_ERROR bad command line format\r\n"), (b"get <a>\r\n", b"END\r\n"),
              not_direct=True),
]

ALL = CLASSIC + META + ERRORS
