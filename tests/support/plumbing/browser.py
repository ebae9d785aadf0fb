"""A page in a real browser, for tests of pages: offline, and strict about what the page does.

    def test_a_click_opens_the_details(page: Page, tmp_path: Path) -> None:
        show(page, tmp_path / "page.html", PHONE)
        page.get_by_role("button", name="Details").click()
        assert not overflows(page)

`page` is a page of Playwright (sync API) in a headless Chromium that the tests bring themselves
(`chromium.py`), the same on every machine, font included. A test with that fixture

- fails when the page asks for anything but `file:`, `data:` and `blob:`, reports an error or
  warning on its console, or throws; it is told at the end of the test, whatever else held;
- is marked `browser` (`pytest -m browser`), and all of them go to one worker of pytest-xdist.

    pytest --no-browser         leaves these tests out; refused where CI is set
    pytest --chromium PATH      another Chromium or Chrome, where the tests bring none (macOS,
    Windows, ARM)

`new_page` makes further pages with settings of their own, as watched:
`new_page(color_scheme="dark", viewport=PHONE)`. `page.screenshot(path=…)` draws what a person would
see. `print(page.content())` is what the browser made of the file.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest
from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Page,
    Request,
    ViewportSize,
    expect,
    sync_playwright,
)
from support.plumbing.chromium import BrowserMissingError, Chromium, ready

DESKTOP: Final[ViewportSize] = {"width": 1280, "height": 800}
PHONE: Final[ViewportSize] = {"width": 390, "height": 844}

_LOCAL = ("file:", "data:", "blob:")
_ARGUMENTS = (
    "--disable-gpu",
    "--font-render-hinting=none",
    "--force-color-profile=srgb",
    "--hide-scrollbars",
)

_PATIENCE: Final = 12_000
"""Milliseconds until something that should happen counts as not happening: long, for machines that
have much to do.
"""
expect.set_options(timeout=_PATIENCE)

NewPage = Callable[..., Page]
"""Makes a watched page; keyword arguments are those of Playwright's `Browser.new_context`."""


def show(page: Page, file: Path, size: ViewportSize = DESKTOP) -> None:
    """Open a file in a window of this size."""
    page.set_viewport_size(size)
    page.goto(file.resolve().as_uri())


def overflows(page: Page) -> bool:
    """Return whether the page is wider than its window, so that a reader must scroll sideways."""
    return bool(
        page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    )


class Watch:
    """A record of forbidden actions of pages."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.allowed: tuple[str, ...] = ()
        """Beginnings of addresses that pages may ask for beside files."""

    def over(self, page: Page) -> None:
        """Watch a page from now on."""
        page.on("request", self._request)
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.faults.append(f"the page threw {error}"))

    def _request(self, request: Request) -> None:
        if not request.url.startswith((*_LOCAL, *self.allowed)):
            self.faults.append(f"the page asked for {request.url}")

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(f"the console says ({message.type}): {message.text}")


@pytest.fixture(scope="session")
def chromium(request: pytest.FixtureRequest) -> Chromium | Path:
    """The browser to test with: the one that tests bring, or the one that was named."""
    named: str | None = request.config.getoption("--chromium")
    if named is not None:
        return Path(named)
    try:
        return ready()
    except BrowserMissingError as error:
        why = str(error)
    pytest.fail(why, pytrace=False)


@contextmanager
def launched(chromium: Chromium | Path) -> Iterator[Browser]:
    """Run a browser."""
    with TemporaryDirectory(prefix="browser-") as home, sync_playwright() as playwright:
        if isinstance(chromium, Chromium):
            executable, variables = (
                chromium.executable,
                dict[str, str | float | bool](chromium.environment(Path(home))),
            )
        else:
            executable, variables = chromium, None
        started = playwright.chromium.launch(
            executable_path=executable, env=variables, args=list(_ARGUMENTS), chromium_sandbox=False
        )
        yield started
        started.close()


@pytest.fixture(scope="module")
def browser(chromium: Chromium | Path) -> Iterator[Browser]:
    """A running browser.

    It ends with the module: while it runs, its thread can run no other event loop.
    """
    with launched(chromium) as started:
        yield started


@pytest.fixture
def new_page(browser: Browser) -> Iterator[NewPage]:
    """Makes pages with settings of their own; at the end of the test none of them may have done
    what it must not.
    """
    watch = Watch()
    contexts = []

    def make(**settings: Any) -> Page:
        context = browser.new_context(**{"viewport": DESKTOP, "offline": True, **settings})
        context.set_default_timeout(_PATIENCE)
        contexts.append(context)
        made = context.new_page()
        watch.over(made)
        return made

    yield make
    for context in contexts:
        context.close()
    if watch.faults:
        pytest.fail("\n".join(watch.faults), pytrace=False)


@pytest.fixture
def page(new_page: NewPage) -> Page:
    """A page in a window of desktop size."""
    return new_page()
