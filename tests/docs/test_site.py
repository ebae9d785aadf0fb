"""The site: built without its API pages, which take longer than all others, and read as from a
folder, offline.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from api_reference import plain
from links import faults
from playwright.sync_api import Page
from support.plumbing.browser import PHONE, overflows, show

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("site") / "docs"
    shutil.copytree(
        ROOT / "docs", source, ignore=shutil.ignore_patterns("_build", "api", "__pycache__")
    )
    for beside in (
        "CHANGELOG.md",
        "examples",
        "interchain_events",
        "pubsub_emulator",
        "tests",
    ):  # what pages link to
        (source.parent / beside).symlink_to(ROOT / beside)
    (source / "api.md").write_text("# API reference\n", encoding="utf-8")
    with (source / "conf.py").open("a", encoding="utf-8") as settings:
        settings.write("api_rooms = ()\n")
    sphinx = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q"]
    subprocess.run(
        [*sphinx, source, source.parent / "html"], check=True, env={"PYTHONPATH": str(ROOT)}
    )
    return source.parent / "html"


def test_every_link_within_the_site_leads_somewhere(site: Path) -> None:
    assert faults(site) == []


def test_broken_links_and_anchors_and_foreign_scripts_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<p id="here"><a href="#here">x</a><a href="b.html#there">x</a><a href="c.html">x</a><a'
        ' href="#gone">x</a><script src="https://elsewhere.example/x.js"></script><a'
        ' href="https://elsewhere.example/">x</a>'
    )
    (tmp_path / "b.html").write_text('<h1 id="there">')
    assert faults(tmp_path) == [
        "a.html: loads https://elsewhere.example/x.js from elsewhere",
        "a.html: c.html: there is no such file",
        "a.html: #gone: there is no such anchor",
    ]


def test_search_works_where_the_site_is_opened_from_a_folder(site: Path, page: Page) -> None:
    show(page, site / "index.html")
    page.get_by_role("textbox", name="Search").first.fill("equivocation")
    page.keyboard.press("Enter")
    found = page.locator("ul.search li a")
    found.first.wait_for()
    found.first.click()
    assert "equivocation" in page.locator("article").inner_text().lower()


def test_a_page_fits_a_phone(site: Path, page: Page) -> None:
    show(page, site / "architecture.html", PHONE)
    assert not overflows(page)


def test_docstrings_keep_their_drawings_and_nothing_in_their_prose_is_markup() -> None:
    assert plain(
        ["Sends *args; see `a_b` | more_.", "", "  a ──► b", "", "x  first", "y  second", ""]
    ) == [
        r"Sends \*args; see `a_b` \| more\_.",
        "",
        *["::", "", "      a ──► b"],
        "",
        *["::", "", "    x  first", "    y  second"],
        "",
    ]
    assert plain(["In order:", "- one", "  more", "- two"]) == [
        "In order:",
        "",
        "- one",
        "  more",
        "- two",
    ]
