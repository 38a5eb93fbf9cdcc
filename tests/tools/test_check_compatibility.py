"""tools/check_compatibility.py finds tests that are not there, and rules without a test."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import check_compatibility  # noqa: E402


def put(tree, path, text=""):
    file = tree / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.fixture
def tree(tmp_path):
    put(tmp_path, "tests/cases/lua/wait/one.case")
    put(tmp_path, "tests/cases/lua/wait/two.case")
    put(tmp_path, "tests/cases/better/lua/more.case")
    put(tmp_path, "tests/cases/memcache/other.case")
    put(tmp_path, "tests/unit/lua/x_test.cc", "TEST(Things, Work) {\nTEST_F(Rig, Runs) {\n")
    put(tmp_path, "tests/system/test_x.py", "def test_it(fixture):\n    pass\n")
    put(tmp_path, "docs/lua.md", "text\n\n## 21. All\n\n| where | functions of `mcp` |\n| both | `wait` `log` |\n\n## More\n\n| `no` |\n")

    def problems(*names):
        put(tmp_path, "docs/compatibility.md", "# T\n\n`free/text`\n\n| `wait`, `log` | %s |\n" % " ".join("`%s`" % name for name in names))
        return check_compatibility.check_tree(tmp_path)
    problems.folder = tmp_path
    return problems


ALL_CASES = ("lua/wait/*", "better/lua/more")


@pytest.mark.parametrize("name", ["lua/wait/one", "Things.Work", "Rig.Runs", "test_x.py", "test_x.py::test_it"])
def test_tests_that_are_there(tree, name):
    assert tree(*ALL_CASES, name) == []


@pytest.mark.parametrize("name", ["lua/wait/three", "lua/none/*", "Things.Sleep", "Rig.Work", "test_y.py", "test_x.py::test_that"])
def test_tests_that_are_not_there(tree, name):
    assert tree(*ALL_CASES, name) == ["docs/compatibility.md:5: there is no test " + name]


def test_cases_that_nobody_names(tree):
    assert tree("lua/wait/one") == ["docs/compatibility.md:1: better/lua/more is not named",
                                    "docs/compatibility.md:1: lua/wait/two is not named"]


def test_functions_without_a_test(tree):
    put(tree.folder, "docs/lua.md", "text\n\n## 21. All\n\n| both | `wait` `log` `sleep` |\n")
    assert tree(*ALL_CASES) == ["docs/compatibility.md:1: no test is named for the function sleep"]


def test_our_own_document():
    assert check_compatibility.check_tree(ROOT) == []
