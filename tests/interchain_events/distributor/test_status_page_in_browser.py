"""The status page in a real browser (ID-10).

`PYTHONPATH=tests python tests/interchain_events/distributor/test_status_page_in_browser.py
docs/images` draws the page's two pictures anew.
"""

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from playwright.sync_api import Page, ViewportSize, expect
from support.distributor.stage import Stage, free_port, stage, until
from support.plumbing.axe import faults
from support.plumbing.browser import DESKTOP, PHONE, NewPage, launched, overflows, show
from support.plumbing.chromium import ready

from interchain_events.distributor.service.standing import Party
from interchain_events.distributor.service.status_page import (
    Check,
    NetworkLine,
    StatusPage,
    SubscriptionLine,
    status_page,
)

DARK_AND_LIGHT = ("light", "dark")
EXAMPLE = StatusPage(
    name="https://ied.example",
    status="DEGRADED",
    checks=[
        Check("the store", "UP"),
        Check("adapter hashnet", "UP"),
        Check("adapter alastria", "DEGRADED", "connection refused"),
    ],
    networks=[
        NetworkLine("hashnet", "", waiting=0, oldest=0.0, given_up=0),
        NetworkLine("alastria", "connection refused", waiting=1_204, oldest=812.0, given_up=3),
    ],
    subscriptions=[
        SubscriptionLine(
            "e74190cd0830e9ba68023da3f0d84307",
            ["ProductOffering", "Category"],
            "https://desmos.example/in",
            waiting=0,
            cause="",
            active=True,
        ),
        SubscriptionLine(
            "a0ab2f0b1f0b4d27a9ed5ee04a1e7cbe",
            ["*"],
            "https://catalogue.example/a/rather/long/path/of/a/webhook?key=0123456789abcdef0123456789",
            waiting=17,
            cause="the name is not known",
            active=True,
        ),
    ],
    total=2,
)
"""A distributor of which one network and one subscriber are down."""


def _served(folder: Path) -> Path:
    """Return a file with the page of a running distributor whose subscriber is away."""

    async def play() -> str:
        async with stage(folder) as made:
            nobody = f"http://127.0.0.1:{free_port()}/in?<b>"
            await made.subscribe(nobody)
            await made.publish()
            await until(lambda: _is_waiting(made))
            return str((await made.ask("GET", "/", headers={"Accept": "text/html"}))[1])

    file = folder / "status.html"
    # While the browser runs, its thread can run no other event loop.
    with ThreadPoolExecutor(1) as pool:
        file.write_text(pool.submit(asyncio.run, play()).result(), encoding="utf-8")
    return file


def _is_waiting(made: Stage) -> bool:
    """Return whether the distributor knows that the subscriber is away."""
    return bool(made.engine.standing.names(Party.SUBSCRIBER))


def test_the_page_of_a_running_distributor_names_networks_and_an_absent_subscriber(
    page: Page, tmp_path: Path
) -> None:
    show(page, _served(tmp_path))
    expect(page.get_by_role("heading", name="Networks")).to_be_visible()
    networks = page.get_by_role("table").nth(0)
    expect(networks.get_by_role("row")).to_have_count(3)
    expect(networks.get_by_role("cell", name="answers")).to_have_count(2)
    subscriptions = page.get_by_role("table").nth(2)
    expect(subscriptions.get_by_text("connection refused")).to_be_visible()
    # What a stranger chose is text, not an element.
    expect(subscriptions.get_by_text("/in?<b>")).to_be_visible()
    assert faults(page) == []


@pytest.mark.parametrize(
    "size",
    [
        pytest.param(
            DESKTOP,
            id="desktop",
        ),
        pytest.param(
            PHONE,
            id="phone",
        ),
    ],
)
@pytest.mark.parametrize("colours", DARK_AND_LIGHT)
def test_the_page_fits_its_window_and_is_for_everybody(
    new_page: NewPage, tmp_path: Path, colours: str, size: ViewportSize
) -> None:
    file = tmp_path / "status.html"
    file.write_text(status_page(EXAMPLE), encoding="utf-8")
    page = new_page(color_scheme=colours)
    show(page, file, size)
    assert not overflows(page)
    assert faults(page) == []
    expect(page.get_by_text("1,204")).to_be_visible()


def _draw(folder: Path, images: Path) -> None:
    """Draw the pictures of the page."""
    file = folder / "status.html"
    file.write_text(status_page(EXAMPLE), encoding="utf-8")
    with launched(ready()) as browser:
        for name, size in (("desktop", DESKTOP), ("phone", PHONE)):
            page = browser.new_page()
            show(page, file, size)
            page.screenshot(path=images / f"distributor-{name}.png", full_page=True)


if __name__ == "__main__":
    with TemporaryDirectory() as made:
        _draw(Path(made), Path(sys.argv[1]))
