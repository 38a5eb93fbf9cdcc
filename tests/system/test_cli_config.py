"""Commands that only read configuration: check, explain, config."""

import json
import subprocess

import pytest

from support import kvferry as kvferry_support

TWO_POOLS = """\
alpha:
  listen: 127.0.0.1:22121
  hash_tag: "{}"
  timeout: 400
  servers:
   - 127.0.0.1:27991:3 zeta
   - 127.0.0.1:27992:1 a
   - 127.0.0.1:27993:2 middle
beta:
  listen: 127.0.0.1:22122
  redis: true
  distribution: random
  timeout: 400
  servers:
   - 127.0.0.1:6380:1
   - 127.0.0.1:6381:1
"""


def run(*words, keys=None):
    return subprocess.run([kvferry_support.program(), *map(str, words)], input=keys, capture_output=True, timeout=60)


@pytest.fixture
def two_pools(tmp_path):
    file = tmp_path / "two.yml"
    file.write_text(TWO_POOLS)
    return file


def test_check_prints_problems_as_json(tmp_path):
    file = tmp_path / "bad.yml"
    file.write_text("a:\n  listen: 127.0.0.1:1\n  timeout: -1\n  servers:\n   - h:1:1\n")
    done = run("check", "--json", file)
    assert done.returncode == 1
    assert json.loads(done.stdout) == [{
        "file": str(file), "line": 3, "column": 12, "severity": "error", "code": "E-range", "pool": "a", "key": "timeout",
        "message": "'timeout' must be a number of milliseconds from 0 to 86400000, or a duration such as 400ms",
        "hint": "leave the key out, or write 0, to wait for ever"}]


def test_check_without_a_file_explains_itself():
    done = run("check")
    assert done.returncode == 2
    assert b"usage: kvferry check" in done.stderr


def test_explain_prints_one_row_a_key(two_pools):
    # Hashes and servers are twemproxy's for this list.
    done = run("explain", "-c", two_pools, "--pool", "alpha", "--tsv", "foo", "bar", "{foo}x")
    assert done.returncode == 0, done.stderr
    rows = [line.split("\t") for line in done.stdout.decode().splitlines()]
    assert rows[0] == ["666f6f", "666f6f", "4275688823", "1", "a"]
    assert rows[1][3:] == ["0", "zeta"]
    assert rows[2] == [b"{foo}x".hex(), "666f6f", "4275688823", "1", "a"]


def test_explain_reads_keys_from_standard_input(two_pools):
    words = ["explain", "-c", two_pools, "--pool", "alpha", "--tsv"]
    plain = run(*words, "foo", "bar").stdout
    assert run(*words, "-", keys=b"foo\nbar\n").stdout == plain
    assert run(*words, "-", keys=b"foo\nbar").stdout == plain
    assert run(*words, "--hex", "-", keys=b"666F6f\n626172\n").stdout == plain
    any_byte = run(*words, "--hex", "-", keys=b"00ff0a\n")
    assert any_byte.stdout.startswith(b"00ff0a\t00ff0a\t")


@pytest.mark.parametrize("text", ["6", "6x", "666f6"])
def test_explain_refuses_what_is_not_hexadecimal(two_pools, text):
    done = run("explain", "-c", two_pools, "--pool", "alpha", "--hex", text)
    assert done.returncode == 1
    assert b"is not a key in hexadecimal digits" in done.stderr


def test_explain_shows_every_pool_to_people(two_pools):
    done = run("explain", "-c", two_pools, "foo")
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode()
    for part in ["pool     alpha", "hash     4275688823 (fnv1a_64)", "point    ", "backend  a (127.0.0.1:27992",
                 "pool     beta", "a new choice for every request"]:
        assert part in text, text


def test_explain_wants_one_pool_for_programs(two_pools):
    done = run("explain", "-c", two_pools, "--tsv", "foo")
    assert done.returncode == 1
    assert b"choose it with --pool: alpha, beta" in done.stderr
    done = run("explain", "-c", two_pools, "--pool", "gamma", "foo")
    assert done.returncode == 1
    assert b"pool 'gamma' is not defined; pools are: alpha, beta" in done.stderr


def test_explain_counts_the_keys_of_a_file(two_pools, tmp_path):
    keys = tmp_path / "keys"
    keys.write_text("".join("key:%d\n" % number for number in range(6000)))
    done = run("explain", "-c", two_pools, "--pool", "alpha", "--keys", keys)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.decode().splitlines()
    assert lines[0] == "pool alpha: 6000 keys"
    counts = {line.split()[-1]: int(line.split()[0]) for line in lines[2:]}
    assert sum(counts.values()) == 6000
    assert counts["zeta"] > counts["middle"] > counts["a"] > 0


def test_config_convert_reads_back(two_pools, tmp_path):
    converted = tmp_path / "ours.yml"
    done = run("config", "convert", "-c", two_pools)
    assert done.returncode == 0, done.stderr
    assert b"dialect: kvferry" in done.stdout
    converted.write_bytes(done.stdout)
    show = run("config", "show", "-c", two_pools)
    assert show.returncode == 0
    assert run("config", "show", "-c", converted).stdout == show.stdout
    for pool in ["alpha", "beta"]:
        words = ["--pool", pool, "--tsv", "foo", "bar"]
        assert run("explain", "-c", converted, *words).stdout == run("explain", "-c", two_pools, *words).stdout
