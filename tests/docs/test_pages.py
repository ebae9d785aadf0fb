"""Every block of every page runs as it stands there, or says why not; few say so."""

import re
from pathlib import Path

import pytest
from support.plumbing.pages import ROOT, PageError, Runner, blocks, check_marks, matches, pages

PAGES = {path.relative_to(ROOT).as_posix(): path for path in pages()}
RUN = [name for name, path in PAGES.items() if any(block.reason is None for block in blocks(path))]

MOST_NOT_RUN = 5
"""Blocks of a page that may be marked as not run."""


@pytest.mark.slow
@pytest.mark.parametrize("name", RUN)
def test_what_a_page_shows_is_so(name: str, tmp_path: Path) -> None:
    runner = Runner(tmp_path)
    try:
        runner.run(PAGES[name])
    finally:
        runner.close()


@pytest.mark.parametrize("name", PAGES)
def test_blocks_that_are_not_run_say_why_and_are_few(name: str) -> None:
    of_page = list(blocks(PAGES[name]))
    for block in of_page:
        check_marks(block)
    marked = [f"{block.place}: {block.reason}" for block in of_page if block.reason is not None]
    assert len(marked) <= MOST_NOT_RUN, "\n".join(marked)


@pytest.mark.parametrize("name", PAGES)
def test_links_to_files_of_the_project_lead_somewhere(name: str) -> None:
    text = re.sub(r"```.*?```", "", PAGES[name].read_text(encoding="utf-8"), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        target = link.partition("#")[0]
        if target and "://" not in target:
            assert (PAGES[name].parent / target).exists(), link


@pytest.mark.parametrize("name", [name for name in PAGES if name.startswith("docs/")])
def test_a_page_says_first_who_it_is_for_and_what_it_answers(name: str) -> None:
    if name == "docs/changelog.md":  # it includes the file of this name
        return
    _title, first, *_ = PAGES[name].read_text(encoding="utf-8").split("\n\n")
    sentence = " ".join(first.split()).partition("? ")[0]
    assert sentence.startswith("For "), "say who the page is for"
    assert first.rstrip().endswith("?") or "? " in " ".join(first.split()), "ask the question"


def _page(folder: Path, text: str) -> Path:
    path = folder / "page.md"
    path.write_text(text.replace("~~~", "```"), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("~~~python\nassert 1 == 2\n~~~\n", r"page\.md:1: .*AssertionError"),
        (
            "~~~python\nprint(2)\n~~~\n\n<!-- prints -->\n~~~text\n3\n~~~\n",
            r"page\.md:6: the page shows\n3\n.*\n2\n",
        ),
        (
            "~~~sh\npubsub run none.toml --out x\n~~~\n",
            r"page\.md:1: `pubsub run .*` ends with 2, not 0",
        ),
        ("<!-- exit code: 1 -->\n~~~sh\npubsub --version\n~~~\n", r"ends with 0, not 1"),
        ("~~~sh\ncargo build\n~~~\n", r"page\.md:1: cargo is not run here"),
        ("~~~sh\npubsub --version | more\n~~~\n", "needs a shell"),
        ("~~~rust\nfn main() {}\n~~~\n", r"page\.md:1: nothing runs a rust block"),
        ("~~~\npubsub demo\n~~~\n", r"page\.md:1: it holds commands"),
        ("    pubsub demo\n", r"page\.md:1: it holds commands"),
        (
            "<!-- serves: 8081 -->\n~~~sh\npubsub --version\n~~~\n",
            r"page\.md:2: no command names the port 8081",
        ),
        (
            "<!-- serves: 8081 -->\n~~~sh\npython -c print(8081)\n~~~\n",
            r"page\.md:2: a server has ended",
        ),
        ("<!-- not run: no -->\n~~~sh\npubsub demo\n~~~\n", r"page\.md:2: say why"),
        (
            "<!-- not run: it takes an hour -->\n\nSome text.\n\n~~~sh\ncargo build\n~~~\n",
            "cargo is not run",
        ),
    ],
)
def test_a_page_that_says_what_is_not_so_is_found(text: str, said: str, tmp_path: Path) -> None:
    runner = Runner(tmp_path)
    with pytest.raises(PageError, match=re.compile(said, re.DOTALL)):
        runner.run(_page(tmp_path, text))
    runner.close()


def test_blocks_share_names_and_files(tmp_path: Path) -> None:
    text = (
        "<!-- file: a.py -->\n~~~python\nprint('of a file')\n~~~\n\n~~~sh\npython a.py  #"
        " comment\n~~~\n\n<!-- prints -->\n~~~text\nof … file\n~~~\n\n~~~python\nx ="
        " 3\n~~~\n\n~~~python\nprint('a\\nb\\nc', x)\n~~~\n\n<!-- prints -->\n~~~text\na\n…\nc"
        " 3\n~~~\n\n<!-- not run: it takes an hour -->\n~~~sh\ncargo build\n~~~\n"
    )
    runner = Runner(tmp_path)
    assert runner.run(_page(tmp_path, text)) == 6  # all but the one that is marked
    runner.close()


def test_a_server_gets_a_free_port_and_ends_with_the_page(tmp_path: Path) -> None:
    text = (
        "<!-- serves: 8081 -->\n~~~sh\npython -m http.server 8081 --bind 127.0.0.1\n~~~\n\n"
        "~~~python\nfrom urllib.request import urlopen\n\n"
        "print(urlopen('http://127.0.0.1:8081/').status)\n~~~\n\n"
        "<!-- prints -->\n~~~text\n200\n~~~\n\n"
        "~~~sh\npython -c 'import time; print(int(time.time()) % 2)'\n~~~\n\n"
        "<!-- prints: soon -->\n~~~text\n1\n~~~\n"
    )
    runner = Runner(tmp_path)
    runner.run(_page(tmp_path, text))
    [server] = runner.servers
    assert server.poll() is None
    runner.close()
    assert server.poll() is not None


def test_shown_output_is_compared_line_by_line() -> None:
    assert matches("a\n…\nz\n", "a  \nb\nc\nz\n")
    assert matches("…\nz", "z")
    assert matches("x … z", "x y z\n")
    assert not matches("a\nz\n", "a\nb\nz\n")
    assert not matches("a\n", "a\nb\n")
    assert not matches("a.c\n", "abc\n")
