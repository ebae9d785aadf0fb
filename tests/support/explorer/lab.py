"""The live page of a node in a browser, as a person uses it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Browser, Page, WebSocketRoute
from support.plumbing.browser import Watch
from support.plumbing.served import PATIENCE, Served

from pubsub_emulator.node.rpc.pubsub_lab import MOST_NAMED

WIDTHS: Final = (390, 1024, 1400, 1920)
SOCKETS: Final = """window.sockets = []; window.WebSocket = class extends WebSocket {
  constructor(...args) { super(...args); window.sockets.push(this); }
};"""
"""Remembers a page's sockets, so that a test can cut them."""

MISPLACED: Final = Path(__file__).with_name("misplaced.js").read_text()
"""Texts that are clipped, cut at the side of the window, or lie on each other."""


class Lab:
    """A node, and pages of it."""

    def __init__(self, node: Served, browser: Browser) -> None:
        self.node = node
        self.watch = Watch()
        self.watch.allowed = (node.url, node.url.replace("http", "ws", 1), "blob:")
        self._browser = browser

    def open(
        self, width: int = 1400, ready: Callable[[Page], object] = id, **settings: Any
    ) -> Page:
        """Open a live page, which may only request resources of its node.

        `ready` is called with the page before it is loaded.
        """
        settings = {"viewport": {"width": width, "height": 900}, "locale": "en-US", **settings}
        context = self._browser.new_context(**settings)
        context.set_default_timeout(PATIENCE * 1000)
        context.add_init_script(SOCKETS)
        page = context.new_page()
        self.watch.over(page)
        ready(page)
        page.goto(self.node.url)
        page.wait_for_selector("#state.live")
        return page

    def at(self, page: Page, number: int) -> None:
        """Wait until a page shows this relay block as the newest."""
        page.wait_for_function(
            "(at) => document.getElementById('best').textContent === String(at)", arg=number
        )

    def best(self) -> int:
        """Return the newest relay block."""
        return int(self.node.call("chain_getHeader")["number"], 16)

    def act(self, page: Page, name: str, **fields: str) -> None:
        """Fill in an act's form and submit it as soon as the dry run allows it."""
        page.click("#tab-acts")
        page.select_option("#act", name)
        for field, value in fields.items():
            entry = page.locator(f"#panel form [name={field}]")
            if entry.evaluate("(each) => each.tagName") == "SELECT":
                entry.select_option(value)
            else:
                entry.fill(value)
        page.locator("#panel form .tried").get_by_text("This would be sent").wait_for()
        said = page.inner_text("#said")
        page.locator("#panel form button[type=submit]:enabled").click()
        page.wait_for_function(
            "([was]) => !document.querySelector('.steps-bar button.primary').disabled && "
            "document.getElementById('said').textContent.startsWith('requested')",
            arg=[said],
        )

    def step(self, page: Page, name: str = "Step") -> None:
        """Press a button of the bar and wait until its work is done."""
        page.get_by_role("button", name=name, exact=True).click()
        page.wait_for_function(
            "() => !document.querySelector('.steps-bar button.primary').disabled"
        )
        self.at(page, self.best())


def many_blocks(count: int, chains: int, events: int = 0) -> Callable[[WebSocketRoute], None]:
    """Return a node's socket that answers for a network of this many chains and blocks.

    All figures follow from block and chain. Each relay block has this many `events` of each kind,
    and names as many as a node names.
    """
    asked: list[int] = []

    def column(at: int) -> dict[str, Any]:
        candidates = [
            {
                "hash": f"0x{at:032x}{para:032x}",
                "para": para,
                "number": at,
                "includedAt": at,
                "collator": 1,
                "verdict": "BadSeal" if (at + para) % 97 == 0 else None,
                "strategy": None,
                "evidence": [],
                "proofNodes": 9,
                "proofBytes": 900,
                "unprunedBytes": 1800,
                "delivered": (at + para) % 3,
                "stopped": False,
                "used": 900,
                "budget": 9000,
                "cachedBytes": 10,
                "publishers": [[1000, 900]],
            }
            for para in range(2000, 2000 + chains)
        ]
        counts = {
            **dict.fromkeys(("publishedCount", "expiredCount", "deliveredCount"), events),
            "queuedMessages": 0,
        }
        counts["queuedBytes"] = 0
        keys = [f"0x{each:064x}" for each in range(min(events, MOST_NAMED))]
        given = {"block": candidates[0]["hash"], "para": 2000, "publisher": 1000, "value": "0x00"}
        lists: dict[str, Any] = {
            "published": [[1000, key, 9] for key in keys],
            "expired": [[1000, key] for key in keys],
            "deliveries": [{**given, "key": key, "blocksSincePublished": 1} for key in keys],
            "idle": [],
            "failures": [f"{key} was not executed" for key in keys],
        }
        names = {
            "number": at,
            "hash": f"0x{at:064x}",
            "parent": f"0x{at - 1:064x}",
            "weight": [1, 2],
        }
        return {**names, **counts, **lists, "candidates": candidates}

    def answer(method: str, params: list[Any]) -> Any:
        if method == "pubsub_columns":
            asked.append(params[1])
            assert sum(asked) < count / 4, "it asks for what nobody sees"
            return [column(at) for at in range(params[0], params[0] - params[1], -1)]
        paras = [{"para": para, "onDemand": False} for para in range(2000, 2000 + chains)]
        return {
            "pubsub_scenario": {"name": "many", "first": 0, "publishers": [], "parachains": paras},
            "pubsub_keyNames": [],
            "rpc_methods": {"methods": []},
            "chain_getHeader": {"number": hex(count)},
            "chain_getBlockHash": f"0x{count:064x}",
            "pubsub_subscribeColumns": "1",
            "pubsub_parachains": paras,
        }.get(method)

    def opened(socket: WebSocketRoute) -> None:
        def told(text: str | bytes) -> None:
            call = json.loads(text)
            result = answer(call["method"], call.get("params", []))
            socket.send(json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": result}))

        socket.on_message(told)

    return opened
