"""Scenario 34: what polkadot-js Apps ask for, by a page in a real browser at the address of Apps.

Apps themselves are in no package index. What Apps are made of is: the library and the keyring in
Apps' own versions, and the types that Apps hand to the library (`@polkadot/apps-config`). The
browser takes the page from https://polkadot.js.org/apps/, which is answered here, so it asks the
node from that origin.
"""

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route
from support.plumbing.served import Served

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import install  # noqa: E402  # of this folder

APPS = "https://polkadot.js.org/apps/"
ACCOUNTS = {"alice", "bob", "charlie", "dave", "eve", "ferdie"}
# The library knows no method of the new specification, and wants a type of an item that these
# chains do not have.
KNOWN = ("RPC methods not decorated", "Unable to resolve type PalletBalancesReserveData")
pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def script() -> str:
    """The page's script, with all that it imports."""
    install.install()
    place = install.folder("js")
    shutil.copy(HERE / "js" / "apps.mjs", place / "apps.mjs")  # where Node finds the packages
    return install.bundle(place / "apps.mjs")


@pytest.fixture
def node() -> Iterator[Served]:
    """A node as a program."""
    served = Served("--dev")
    yield served
    assert served.end() == 130


def _page(browser: Browser, script: str, said: list[str]) -> Page:
    context = browser.new_context()
    context.grant_permissions(["local-network-access"])  # what a person is asked for
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on(
        "console",
        lambda line: said.append(line.text) if line.type in {"error", "warning"} else None,
    )

    def answer(route: Route) -> None:
        known = route.request.url == APPS
        body = f"<!doctype html><title>Apps</title><script>{script}</script>"
        route.fulfill(
            status=200 if known else 204,
            content_type="text/html; charset=utf-8",
            body=body if known else "",
        )

    context.route("https://**", answer)
    page.goto(APPS)
    return page


@pytest.mark.parametrize("path", ["", "2000"])
def test_34_apps_open_a_node_and_send_a_transfer(
    browser: Browser, script: str, node: Served, path: str
) -> None:
    said: list[str] = []
    page = _page(browser, script, said)
    node.call(
        "dev_newBlock", {"count": 60}
    )  # the library throws before session 1, on any chain without staking
    types = json.loads(install.apps_types().read_text(encoding="utf-8"))
    url = node.url.replace("http", "ws") + path
    found: dict[str, Any] = page.evaluate("([url, types]) => walkApps(url, types)", [url, types])
    page.context.close()
    assert not found["errors"]
    assert not [line for line in said if not any(known in line for known in KNOWN)]
    begin, explorer, transfer = found["begin"], found["explorer"], found["transfer"]
    assert (begin["isDevelopment"], begin["properties"]["tokenSymbol"]) == (True, ["UNIT"])
    assert (begin["properties"]["ss58Format"], begin["properties"]["tokenDecimals"]) == (
        "42",
        ["10"],
    )
    assert set(begin["accounts"]) >= ACCOUNTS
    assert explorer["epoch"] == (50 if path == "" else None)
    numbers = [each["number"] for each in explorer["heads"]]
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    assert explorer["now"] > 0
    assert explorer["target"] == 6_000
    assert found["block"]["isFinal"]
    assert found["block"]["extrinsics"]
    assert found["node"] == {
        "health": {"peers": 0, "isSyncing": False, "shouldHavePeers": False},
        "peers": 0,
        "pending": 0,
    }
    assert found["state"]["values"] > 20
    assert transfer["isOk"]
    assert (transfer["statuses"][0], transfer["statuses"][-1]) == ("Ready", "Finalized")
    assert (transfer["got"], transfer["gave"]) == ("1000000000000", "1000000000000")
    assert int(transfer["estimate"]) > 0
