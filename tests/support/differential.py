"""Random commands of memcached's protocol, and the comparison of what two servers answer to them.

Both servers are sent the same commands; only CAS uniques are each server's own. Every command is followed by an `mn`, whose answer separates
the replies, so a reply that is one line short or long is seen where it happens.
"""

import base64
import dataclasses
import math
import random
import re
import time

from support.wire import Wire, shorten

SEPARATOR = b"MN\r\n"
CAS = b"@CAS@"
KEYS = 300
LARGE_KEYS = 6  # Only these hold values that take more than a few kilobytes, so that nothing has to be evicted.
CAS_BEYOND = 1 << 50  # Above every CAS unique that a server makes by itself.
# What a command's CAS is beside the last one told: the same, one that was before, one that never was. The one behind it may exist, on one side.
CAS_SHIFTS = (0, 0, 0, -1, CAS_BEYOND)
FAR_SECONDS = 100_000
ACCESS_NOTED_SECONDS = 60
ITEM_BYTES_MAX = 1 << 20
SIZES = (0, 1, 2, 5, 16, 100, 100, 100, 300, 1000, 2000)
LARGE_SIZES = (8100, 8160, 8168, 8169, 8176, 16384, 50_000, 300_000, 524_288, 900_000, ITEM_BYTES_MAX - 200, ITEM_BYTES_MAX + 1)

# Lines that are wrong or odd, and answered alike.
ODD = (
    b"GET k1\r\n", b"nothing\r\n", b"set k1 0 0 c\r\n", b"set k1 0 0 -1\r\n", b"incr k1 x\r\n", b"incr k1 -1\r\n", b"decr k1 18446744073709551616\r\n",
    b"touch k1 x\r\n", b"gat x k1\r\n", b"delete k1 0\r\n", b"delete k1 0 noreply\r\n", b"delete k1 noreply\r\n", b"get " + b"k" * 250 + b"\r\n",
    b"get " + b"k" * 251 + b"\r\n", b"get k1 " + b"k" * 251 + b"\r\n", b"delete " + b"k" * 251 + b"\r\n", b"incr " + b"k" * 251 + b" 1\r\n",
    b"touch " + b"k" * 251 + b" 1\r\n", b"me\r\n", b"ms k1\r\n", b"ms k1 x\r\n", b"ms k1 -1\r\n", b"mg k1 v v\r\n", b"mg k1 !\r\n",
    b"mg " + b"k" * 251 + b" v\r\n", b"md " + b"k" * 251 + b"\r\n", b"mg k1 Tx\r\n", b"mg k1 T\r\n", b"mg k1 Nx\r\n", b"mg k1 Rx\r\n", b"mg k1 z\r\n",
    b"ms k1 1 Tx\r\nx\r\n", b"ms k1 1 Fx\r\nx\r\n", b"ms k1 1 MX\r\nx\r\n", b"ms k1 1 Cx\r\nx\r\n", b"ms k1 1 z\r\nx\r\n", b"ms k1 1 b\r\nx\r\n", b"ma k1 z\r\n",
    b"ma k1 Dx\r\n", b"ma k1 Jx N0\r\n", b"ma k1 MX\r\n", b"mg k1 O" + b"o" * 31 + b"\r\n", b"mg k1 O" + b"o" * 32 + b"\r\n", b"mg !!! b v\r\n",
    b"mg aGVsbG8= b k v\r\n", b"mg absent s v t f k O1 q\r\n", b"mg absent k O1\r\n", b"mg  k1   v   s\r\n", b"get  k1   k2\r\n", b"verbosity 1\r\n",
    b"flush_all x\r\n",
)

SHORT = b"CLIENT_ERROR bad command line format\r\n"
# What the two answer differently, as docs/protocols.md says: the request, memcached 1.6.18, kvferry. Each begins on an empty store.
INTENDED = (
    # Lines with too few words.
    *((line, b"ERROR\r\n", SHORT) for line in (b"get\r\n", b"gets\r\n", b"\r\n", b"set k 0 0\r\n", b"incr k\r\n", b"touch k\r\n", b"delete\r\n", b"mg\r\n",
                                             b"ms\r\n", b"md\r\n", b"ma\r\n", b"verbosity\r\n")),
    (b"gat 0\r\n", b"END\r\n", SHORT),
    (b" get k\r\n", b"END\r\n", b"ERROR\r\n"),
    # The value of a refused line is skipped when its length can be read.
    *((line, SHORT + b"ERROR\r\n", SHORT) for line in (b"set k a 0 1\r\nx\r\n", b"set k 0 b 1\r\nx\r\n", b"cas k 0 0 1 x\r\nx\r\n",
                                                     b"set " + b"k" * 251 + b" 0 0 1\r\nx\r\n")),
    (b"cas k 0 0 1\r\nx\r\n", b"ERROR\r\nERROR\r\n", SHORT),
    # What lies behind the announced length is read as a command, here an empty one.
    *((line, b"CLIENT_ERROR bad data chunk\r\nERROR\r\n", b"CLIENT_ERROR bad data chunk\r\n" + SHORT) for line in (
        b"set k 0 0 2\r\nabcd\r\n", b"ms k 2 T0\r\nabcd\r\n")),
    # Numbers beyond 32 bits.
    *((line, b"STORED\r\n", SHORT) for line in (b"set k 4294967296 0 1\r\nx\r\n", b"set k 0 4294967296 1\r\nx\r\n")),
    # A join that would be longer than the largest item.
    (b"set k 0 0 1048000\r\n" + b"x" * 1048000 + b"\r\nappend k 0 0 1000\r\n" + b"x" * 1000 + b"\r\n", b"STORED\r\nNOT_STORED\r\n",
     b"STORED\r\nSERVER_ERROR object too large for cache\r\n"),
    (b"delete k 5\r\n", b"CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n", b"NOT_FOUND\r\n"),
    # What later releases of memcached do, and kvferry with them.
    (b"ms k 1 E5 c\r\nx\r\n", b"CLIENT_ERROR invalid flag\r\n", b"HD c5\r\n"),
    (b"ms k 1\r\nx\r\nmd k x\r\n", b"HD\r\nCLIENT_ERROR invalid or duplicate flag\r\n", b"HD\r\nHD\r\n"),
    (b"md k z\r\n", b"CLIENT_ERROR invalid or duplicate flag\r\n", b"CLIENT_ERROR invalid flag\r\n"),
    (b"ms k 1 MA N0\r\nx\r\n", b"NS\r\n", b"HD\r\n"),
    (b"ms k 1 MA C5\r\nx\r\n", b"NS\r\n", b"NF\r\n"),
    (b"ms k 1 Mset\r\nx\r\n", b"CLIENT_ERROR incorrect length for M token\r\n", b"CLIENT_ERROR invalid mode for ms M token\r\n"),
    (b"ma k N0 J5 v q\r\n", b"VA 1\r\n5\r\n", b""),
    (b"ma k N0 q\r\n", b"HD\r\n", b""),
    # A number that becomes longer loses the new TTL in 1.6.18.
    (b"ms k 1\r\n9\r\nma k T-1\r\nmg k\r\n", b"HD\r\nHD\r\nHD\r\n", b"HD\r\nHD\r\nEN\r\n"),
    # Gone from now on: 1.6.18 shows what is left of a 32-bit number.
    (b"ms k 1\r\nx\r\nmg k T-1 s\r\nmg k\r\n", b"HD\r\nHD s1\r\nEN\r\n", b"HD\r\nHD s1\r\nEN\r\n"),
    # An append forgets in 1.6.18 that the key came in base64.
    (b"ms aGVsbG8= 1 b\r\nx\r\nms aGVsbG8= 1 b MA\r\ny\r\nmg hello k\r\n", b"HD\r\nHD\r\nHD khello\r\n", b"HD\r\nHD\r\nHD kaGVsbG8= b\r\n"),
    (b"mg aGVsbG8= b N0 k\r\n", b"HD khello W\r\n", b"HD kaGVsbG8= b W\r\n"),
)


@dataclasses.dataclass
class Command:
    """One request. `text` is whole but for CAS, which stands for the CAS unique of `key` plus `cas_shift`."""
    text: bytes
    key: bytes = b""
    cas_shift: int = 0


class Generator:
    """Commands drawn from a seed: all verbs, sizes, exptimes, flags; some lines that are wrong."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.is_counting = False
        self.filler = bytes(self.random.choice(b"abcdefghijklmnopqrstuvwxyz0123456789 \r\n\t\x00\x80\xff") for _ in range(4096))

    def batch(self, count: int):
        """Commands that may be sent at once. While memcached still sends a number to somebody it does not write a shorter one over it and pad it
        with blanks, as it else does; so numbers are either changed or read in one batch."""
        self.is_counting = self.random.random() < 0.5
        return [self.draw() for _ in range(count)]

    def draw(self) -> Command:
        weights = (18, 16, 12 * self.is_counting, 10, 20, 16, 5, 9 * self.is_counting, 1)
        return self.random.choices((self.storage, self.retrieval, self.arithmetic, self.small_classic, self.meta_get, self.meta_set, self.meta_delete,
                                    self.meta_arithmetic, self.odd), weights)[0]()

    def read_key(self) -> bytes:
        key = self.key()
        return b"k0" if self.is_counting and key.startswith(b"n") else key

    def key(self) -> bytes:
        """Prefixes say what a key is for: k any value, n numbers, b keys that travel in base64, large values of any size."""
        pick = self.random
        draw = pick.random()
        if draw < 0.01:
            return b"large%d" % pick.randrange(LARGE_KEYS)
        if draw < 0.2:
            return b"n%d" % pick.randrange(KEYS // 5)
        if draw < 0.25:
            return b"b%d" % pick.randrange(KEYS // 10)
        number = pick.randrange(KEYS // 10 if pick.random() < 0.4 else KEYS)
        # Lengths up to the longest.
        return b"k%d" % number + b"-" * (number * 7 % 240 if number % 3 == 0 else number % 20)

    def value(self, key: bytes) -> bytes:
        pick = self.random
        if key.startswith(b"n"):
            # None of 2^63 and above: 1.6.18 looks for a minus sign behind those, beyond the end of the value.
            return b"%d" % pick.choice((0, 1, 9, 10, 99, 12345, 1 << 62, pick.randrange(1 << 40))) + b" " * (pick.random() < 0.1)
        size = pick.choice(LARGE_SIZES if key.startswith(b"large") and pick.random() < 0.5 else SIZES)
        start = pick.randrange(4000)
        # A letter comes first: 1.6.18 takes blanks before a number, and anything that a blank separates from one, for a part of it.
        return (b"v" + self.filler[start:] + self.filler * (size // 4096 + 1))[:size]

    def part(self) -> bytes:
        """What may be joined to a value: short, so that values do not grow for ever."""
        return self.value(b"k")[:64]

    def exptime(self) -> int:
        """Never, far enough for the run, or already past: nothing that depends on when it is asked about."""
        return self.random.choice((0, 0, 0, FAR_SECONDS, 2_592_000, -1, 2_592_001, 2_000_000_000))

    def client_flags(self) -> int:
        return self.random.choice((0, 0, 0, 1, 65535, 65536, (1 << 32) - 1))

    def tail(self) -> bytes:
        return b" noreply" if self.random.random() < 0.1 else b""

    def storage(self) -> Command:
        key = self.key()
        verb = self.random.choice((b"set", b"set", b"set", b"add", b"replace", b"append", b"prepend", b"cas"))
        joins = verb in (b"append", b"prepend")
        if key.startswith(b"b") or joins and key[:1] in b"nl":
            # Numbers stay numbers, and no join goes beyond the largest item: see INTENDED.
            key = b"k0"
        value = self.part() if joins else self.value(key)
        unique = b" " + CAS if verb == b"cas" else b""
        text = b"%s %s %d %d %d%s%s\r\n%s\r\n" % (verb, key, self.client_flags(), self.exptime(), len(value), unique, self.tail(), value)
        return Command(text, key, self.random.choice(CAS_SHIFTS))

    def retrieval(self) -> Command:
        verb = self.random.choice((b"get", b"get", b"gets", b"gat", b"gats"))
        keys = [self.read_key() for _ in range(self.random.choice((1, 1, 1, 2, 5, 20)))]
        head = verb + b" %d" % self.exptime() if verb.startswith(b"gat") else verb
        return Command(head + b" " + b" ".join(keys) + b"\r\n")

    def arithmetic(self) -> Command:
        verb = self.random.choice((b"incr", b"decr"))
        delta = self.random.choice((0, 1, 7, 1000, (1 << 64) - 1 if verb == b"decr" else 10))
        return Command(b"%s %s %d%s\r\n" % (verb, self.key(), delta, self.tail()))

    def small_classic(self) -> Command:
        key = self.key()
        return Command(self.random.choice((b"delete %s%s\r\n" % (key, self.tail()), b"touch %s %d%s\r\n" % (key, self.exptime(), self.tail()))))

    def flags(self, letters) -> bytes:
        """Some of `letters`, in any order, each with what belongs to it."""
        pick = self.random
        chosen = pick.sample(letters, pick.randrange(min(len(letters), 7)))
        lasting = "t" in chosen  # What is gone from now on has no TTL worth telling, see INTENDED.
        tokens = {
            "T": lambda: b"T%d" % (pick.choice((0, FAR_SECONDS)) if lasting else self.exptime()), "N": lambda: b"N%d" % pick.choice((0, FAR_SECONDS)), "R": lambda: b"R%d" % pick.choice((1, 30, 1000)),
            "F": lambda: b"F%d" % self.client_flags(), "O": lambda: b"O%x" % pick.randrange(1 << 30), "C": lambda: b"C" + CAS,
            "D": lambda: b"D%d" % pick.choice((0, 1, 5, 1 << 40)), "J": lambda: b"J%d" % pick.choice((0, 13, 1 << 60)),
        }
        return b"".join(b" " + tokens.get(letter, letter.encode)() for letter in chosen)

    @staticmethod
    def named(key: bytes) -> bytes:
        """The key as it stands in a meta line, and a flag that says so when it is encoded."""
        return base64.b64encode(key) if key.startswith(b"b") else key

    def meta(self, verb: bytes, key: bytes, words: bytes, value=None) -> Command:
        mark = b" b" if key.startswith(b"b") else b""
        length = b"" if value is None else b" %d" % len(value)
        body = b"" if value is None else value + b"\r\n"
        return Command(verb + b" " + self.named(key) + length + mark + words + b"\r\n" + body, key, self.random.choice(CAS_SHIFTS))

    def meta_get(self) -> Command:
        key = self.read_key()
        # An item that N makes does not remember in 1.6.18 that its key came in base64.
        return self.meta(b"mg", key, self.flags("vsfctkOuqTRhl" if key.startswith(b"b") else "vsfctkOuqTNRhl"))

    def meta_set(self) -> Command:
        key = self.key()
        mode = self.random.choice((b"", b"", b"", b" ME", b" MR", b" MS", b" MA", b" MP"))
        joins = mode in (b" MA", b" MP")
        if joins and key[:1] in b"nbl":
            key = b"k1"
        # Joining to an item that is absent, with C: see INTENDED.
        words = self.flags("TFckOqI" if joins else "TFckOqCI")
        return self.meta(b"ms", key, mode + words, self.part() if joins else self.value(key))

    def meta_delete(self) -> Command:
        return self.meta(b"md", self.key(), self.flags("ITCkOq"))

    def meta_arithmetic(self) -> Command:
        key = self.key()
        mode = self.random.choice((b"", b" MI", b" MD", b" M+", b" M-"))
        # Quiet with a value or with N, base64 with N, and T: see INTENDED.
        letters = self.random.choice(("DNJCtcvkO", "DCqtckO")) if key.startswith(b"n") else "DCqtckO"
        if key.startswith(b"large"):
            letters = letters.replace("C", "")  # Which of two reasons to refuse comes first depends on 1.6.18's pieces.
        return self.meta(b"ma", key, mode + self.flags(letters))

    def odd(self) -> Command:
        return Command(self.random.choice(ODD))


class Side:
    """One of the two servers, and the CAS uniques that it has told."""

    def __init__(self, name: str, port: int):
        self.name = name
        self.wire = Wire(port, seconds=60)
        self.cas = {}

    def render(self, command: Command) -> bytes:
        if CAS not in command.text:
            return command.text
        return command.text.replace(CAS, b"%d" % (self.cas[command.key] + command.cas_shift if command.key in self.cas else CAS_BEYOND))

    def ask(self, commands):
        """The replies, one for each command."""
        self.wire.send(b"".join(self.render(command) + b"mn\r\n" for command in commands))
        # No value holds a separator: there are no capital letters in Generator.filler.
        data, count, searched = [], 0, b""
        while count < len(commands):
            piece = self.wire.socket.recv(1 << 18)
            assert piece, "%s closed the connection" % self.name
            data.append(piece)
            joined = searched + piece
            count += joined.count(SEPARATOR)
            searched = joined[-(len(SEPARATOR) - 1):]
        replies = b"".join(data).split(SEPARATOR)
        assert len(replies) == len(commands) + 1 and replies[-1] == b"", "%s is out of step behind %r" % (self.name, replies[-1][-200:])
        return replies[:-1]


class Comparison:
    """Sends commands to both and holds the replies against each other."""

    def __init__(self, memcached: Side, kvferry: Side):
        self.sides = (memcached, kvferry)
        self.pairs = {}  # Key: the CAS uniques that both told last, as a pair.
        self.count = 0
        self.slack_seconds = 1  # By how much times may differ: each server's clock ticks by itself, and one is asked after the other.
        for side in self.sides:
            # Uniques so low that the one before is none are over.
            side.ask([Command(b"set warm%d 0 0 1\r\nx\r\n" % number) for number in range(2000)])

    def step(self, commands):
        began = time.monotonic()
        replies = [side.ask(commands) for side in self.sides]
        self.slack_seconds = max(self.slack_seconds, 1 + math.ceil(time.monotonic() - began))
        for command, one, other in zip(commands, *replies):
            self.count += 1
            reason = self.difference(command, one, other)
            assert not reason, "command %d, %s: %r\n%s: %s\n%s: %s" % (
                self.count, reason, command.text[:300], self.sides[0].name, shorten(one, 600), self.sides[1].name, shorten(other, 600))

    def difference(self, command: Command, one: bytes, other: bytes) -> str:
        verb = command.text.split(b" ", 1)[0]
        if verb in (b"gets", b"gats"):
            return self.compare_values(one, other)
        if verb in (b"mg", b"ms", b"ma", b"md"):
            return self.compare_meta(command, one, other)
        return "" if one == other else "other bytes"

    VALUE = re.compile(rb"VALUE (\S+) (\d+) (\d+) (\d+)\r\n")

    def compare_values(self, one: bytes, other: bytes) -> str:
        at = [0, 0]
        while True:
            found = [self.VALUE.match(text, place) for text, place in zip((one, other), at)]
            if None in found:
                return "" if one[at[0]:] == other[at[1]:] else "other bytes"
            if found[0].groups()[:3] != found[1].groups()[:3]:
                return "other head"
            size = int(found[0].group(3)) + 2
            bodies = [text[match.end():match.end() + size] for text, match in zip((one, other), found)]
            if bodies[0] != bodies[1]:
                return "other value"
            reason = self.note_cas(found[0].group(1), [int(match.group(4)) for match in found])
            if reason:
                return reason
            at = [match.end() + size for match in found]

    def compare_meta(self, command: Command, one: bytes, other: bytes) -> str:
        lines = [text.partition(b"\r\n") for text in (one, other)]
        if lines[0][2] != lines[1][2]:
            return "other value"
        heads = [line[0].split(b" ") for line in lines]
        if len(heads[0]) != len(heads[1]):
            return "other line"
        for mine, theirs in zip(*heads):
            if mine[:1] == b"c" == theirs[:1] and mine[1:].isdigit() and theirs[1:].isdigit():
                reason = self.note_cas(command.key, [int(mine[1:]), int(theirs[1:])])
                if reason:
                    return reason
            elif mine != theirs and not self.is_close(mine, theirs):
                return "other word"
        return ""

    def is_close(self, first: bytes, second: bytes) -> bool:
        """Whether both are the same time, but for the slack. 1.6.18 notes an access only when the last one noted is a minute old."""
        numbers = [re.fullmatch(rb"([tl])(-?\d+)", word) for word in (first, second)]
        if None in numbers or numbers[0].group(1) != numbers[1].group(1):
            return False
        more = int(numbers[0].group(2)) - int(numbers[1].group(2))
        most = ACCESS_NOTED_SECONDS if numbers[0].group(1) == b"l" else 0
        return -self.slack_seconds <= more <= most + self.slack_seconds

    def note_cas(self, key: bytes, told) -> str:
        """Whether both say the same about change: a CAS unique is new on both, or old on both."""
        if (told[0] == 0) != (told[1] == 0):
            return "no CAS on one side"
        if told[0] == 0:
            return ""
        before = self.pairs.get(key)
        if before is not None and (before[0] == told[0]) != (before[1] == told[1]):
            return "CAS %r after %r" % (told, before)
        self.pairs[key] = tuple(told)
        for side, number in zip(self.sides, told):
            side.cas[key] = number
        return ""
