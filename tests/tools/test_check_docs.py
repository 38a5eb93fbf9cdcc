"""tools/check_docs.py finds broken links, untested blocks and unread examples."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import check_docs  # noqa: E402


def put(tree, path, text):
    file = tree / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.mark.parametrize("link", ["docs/a.md", "docs/a.md#one-head", "#top", "https://example.org/x", "src"])
def test_good_links(tmp_path, link):
    put(tmp_path, "docs/a.md", "# One `head`!\n")
    put(tmp_path, "src/x", "")
    put(tmp_path, "README.md", f"# Top\n\n[text]({link})\n")
    assert check_docs.check_tree(tmp_path) == []


@pytest.mark.parametrize("link, words", [
    ("docs/b.md", "does not exist"), ("docs/a.md#two", "no such heading"), ("#bottom", "no such heading"),
    ("../outside.md", "")])
def test_bad_links(tmp_path, link, words):
    put(tmp_path, "outside.md", "# Outside\n")
    put(tmp_path, "tree/docs/a.md", "# One\n```\n# two\n```\n")
    put(tmp_path, "tree/README.md", f"# Top\n\n[text]({link})\n")
    found = check_docs.check_tree(tmp_path / "tree")
    assert len(found) == 1 and found[0].startswith("README.md:3: ") and words in found[0]


def test_links_inside_code_are_not_links(tmp_path):
    put(tmp_path, "README.md", "`[a](b)`\n```\n[a](b)\n```\n")
    assert check_docs.check_tree(tmp_path) == []


def test_a_tested_block_needs_a_test(tmp_path):
    put(tmp_path, "README.md", "text\n\n<!-- tested: start -->\n```sh\necho 1\n```\n")
    assert "README.md:3: " in check_docs.check_tree(tmp_path)[0]
    put(tmp_path, "tests/system/test_x.py", 'document_block(README, "start")\n')
    assert check_docs.check_tree(tmp_path) == []
    assert check_docs.document_block(tmp_path / "README.md", "start") == "echo 1\n"
    with pytest.raises(KeyError):
        check_docs.document_block(tmp_path / "README.md", "stop")


def test_a_block_equals_the_file_that_it_names(tmp_path):
    put(tmp_path, "README.md", "<!-- same as: examples/a.yml -->\n```yaml\na: 1\n```\n")
    assert "does not exist" in check_docs.check_tree(tmp_path)[0]
    put(tmp_path, "tests/system/test_examples.py", 'glob("*.yml")\n')
    put(tmp_path, "examples/a.yml", "a: 2\n")
    assert "differs" in check_docs.check_tree(tmp_path)[0]
    put(tmp_path, "examples/a.yml", "a: 1\n")
    assert check_docs.check_tree(tmp_path) == []


def test_every_example_is_read_by_a_test(tmp_path):
    put(tmp_path, "tests/system/test_examples.py", 'glob("*.yml")\n')
    put(tmp_path, "examples/a.yml", "a: 1\n")
    put(tmp_path, "examples/README.md", "words\n")
    assert check_docs.check_tree(tmp_path) == []
    put(tmp_path, "examples/b.toml", "a = 1\n")
    assert "examples/b.toml:1: " in check_docs.check_tree(tmp_path)[0]
