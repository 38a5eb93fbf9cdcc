"""tools/check_layers.py finds what it claims to find, and nothing else."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import check_layers  # noqa: E402

TABLE = """
<!-- layers: begin -->

| room | may include | must not know |
|---|---|---|
| `base` | | everything |
| `protocol/memcache` | `base` | |
| `call` | `base` `protocol` | |
| `pool` | `base` `call` | |
| `config` | `base` `pool/options.h` | |
| `app` | all | |

<!-- layers: end -->
"""
ROOMS = ["base", "protocol/memcache", "call", "pool", "config", "app"]


@pytest.fixture
def tree(tmp_path):
    """A small tree without problems; tests add one and look for it."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/style.md").write_text(TABLE)
    for room in ROOMS:
        folder = tmp_path / "src" / room
        folder.mkdir(parents=True)
        (folder / "README.md").write_text("# room\n")
    return tmp_path


def put(tree, path, text):
    file = tree / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def problems(tree):
    return check_layers.check_tree(tree)[0]


def test_a_clean_tree_has_no_problem(tree):
    put(tree, "src/pool/x.h", '#pragma once\n#include <vector>\n#include "base/a.h"\n#include "pool/y.h"\n')
    put(tree, "src/call/x.cc", '#include "call/x.h"\n#include "protocol/memcache/request.h"\n')
    put(tree, "src/config/x.cc", '#include "pool/options.h"\n')
    put(tree, "src/app/main.cc", '#include "config/x.h"\n#include "protocol/memcache/request.h"\n')
    assert problems(tree) == []


@pytest.mark.parametrize("path, include", [
    ("src/base/x.cc", "call/call.h"),                # upwards
    ("src/pool/x.cc", "protocol/memcache/request.h"),  # not listed
    ("src/protocol/memcache/x.cc", "call/call.h"),
    ("src/config/x.cc", "pool/pool.h"),              # only one header is allowed
])
def test_a_forbidden_include_is_named_with_its_line(tree, path, include):
    put(tree, path, f'#include "base/a.h"\n#include "{include}"\n')
    found = problems(tree)
    assert len(found) == 1
    assert found[0].startswith(f"{path}:2: ") and include in found[0] and "may include: " in found[0] \
        or "nothing of ours" in found[0]


def test_an_include_without_its_room_is_a_problem(tree):
    put(tree, "src/base/x.cc", '#include "a.h"\n')
    assert "by its path below src/" in problems(tree)[0]


@pytest.mark.parametrize("text, words", [
    ("int x;\n", "pragma once"),
    ("#pragma once\nusing namespace std;\n", "no using namespace"),
    ("#pragma once\n// TODO: later\n", "needs an issue"),
    ("#pragma once\n// FIXME later\n", "needs an issue"),
])
def test_forbidden_forms(tree, text, words):
    put(tree, "src/base/x.h", text)
    assert len(problems(tree)) == 1 and words in problems(tree)[0]


def test_an_open_end_with_its_issue_is_allowed(tree):
    put(tree, "src/base/x.h", "#pragma once\n// TODO(#12): later\n")
    assert problems(tree) == []


@pytest.mark.parametrize("lines, count, notes", [(500, 0, 0), (501, 0, 1), (1000, 0, 1), (1001, 1, 0)])
def test_limits_of_size(tree, lines, count, notes):
    put(tree, "src/base/x.cc", "\n" * lines)
    assert tuple(map(len, check_layers.check_tree(tree))) == (count, notes)


def test_a_readme_is_there_and_short(tree):
    put(tree, "src/base/README.md", "line\n" * 40)
    assert problems(tree) == []
    put(tree, "src/base/README.md", "line\n" * 41)
    assert "the limit is 40" in problems(tree)[0]
    (tree / "src/base/README.md").unlink()
    assert "is missing" in problems(tree)[0]


def test_rooms_and_rows_match(tree):
    put(tree, "src/extra/README.md", "# extra\n")
    assert "src/extra:1: has no row" in problems(tree)[0]


def test_a_row_without_a_room_is_a_problem(tree):
    (tree / "docs/style.md").write_text(TABLE.replace("| `app` | all | |", "| `app` | all | |\n| `gone` | `base` | |"))
    assert "names room gone" in problems(tree)[0]


def test_a_cycle_of_the_table_is_found(tree):
    (tree / "docs/style.md").write_text(TABLE.replace("| `base` | |", "| `base` | `pool` |"))
    assert "cycle" in problems(tree)[0]


def test_a_missing_table_is_a_problem(tree):
    (tree / "docs/style.md").write_text("no table\n")
    assert "no table" in problems(tree)[0]


def test_tests_are_checked_for_words_but_not_for_includes(tree):
    put(tree, "tests/unit/base/x_test.cc", '#include "pool/pool.h"\nusing namespace std;\n')
    assert len(problems(tree)) == 1
