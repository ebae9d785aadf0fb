import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page
from support.plumbing import browser as support
from support.plumbing import chromium
from support.plumbing.browser import DESKTOP, PHONE, Watch, overflows, show
from support.plumbing.processes import python

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def watched(browser: support.Browser) -> Iterator[tuple[Page, Watch]]:
    """A page whose faults are looked at instead of failing the test."""
    watch = Watch()
    context = browser.new_context(offline=True)
    made = context.new_page()
    watch.over(made)
    yield made, watch
    context.close()


def test_a_page_wider_than_its_window_overflows(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "wide.html"
    file.write_text("<!doctype html><div style='width:600px'>wide</div>")
    show(page, file, PHONE)
    assert overflows(page)
    show(page, file, DESKTOP)
    assert not overflows(page)


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("<img src='http://localhost:9/x.png'>", "asked for http://localhost:9/x.png"),
        ("<script>console.error('broken')</script>", "(error): broken"),
        ("<script>console.warn('odd')</script>", "(warning): odd"),
        ("<script>nothing()</script>", "nothing is not defined"),
    ],
)
def test_what_a_page_must_not_do_is_seen(
    watched: tuple[Page, Watch], tmp_path: Path, body: str, fault: str
) -> None:
    page, watch = watched
    file = tmp_path / "bad.html"
    file.write_text(f"<!doctype html>{body}")
    show(page, file)
    assert any(fault in each for each in watch.faults), watch.faults


def _pytest(*arguments: str | Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    without = ("-p", "no:cacheprovider", "-p", "no:randomly", "-p", "no:schemathesis")
    settings = ("-c", ROOT / "pyproject.toml", *without, "-q")
    return python("-m", "pytest", *settings, *arguments, **variables)


def test_a_page_error_fails_its_test_even_if_nothing_else_does(tmp_path: Path) -> None:
    file = tmp_path / "test_fault.py"
    file.write_text("def test_nothing(page):\n    page.set_content('<script>nothing()</script>')\n")
    done = _pytest("-p", "conftest", file)
    assert done.returncode == 1, done.stdout
    assert "the page threw nothing is not defined" in done.stdout


@pytest.mark.parametrize(
    ("where", "code", "words"),
    [
        ("", 0, "skipped"),
        ("true", 4, "pages are tested as well"),
    ],
)
def test_the_browser_is_left_out_on_demand_but_not_by_ci(where: str, code: int, words: str) -> None:
    done = _pytest("--no-browser", "-k", "wider_than_its_window", Path(__file__), CI=where)
    assert done.returncode == code, done.stdout
    assert words in done.stdout + done.stderr


def test_a_package_with_another_hash_is_refused(tmp_path: Path) -> None:
    (tmp_path / "chromium.tgz").write_bytes(b"something else")
    with pytest.raises(chromium.BrowserMissingError, match="is not the pinned package"):
        chromium._check(tmp_path / "chromium.tgz")
