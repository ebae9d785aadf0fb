"""`pubsub serve` as a program: it says where it listens, writes a journal, ends with 130, and does the same again."""

import json
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from support.processes import program
from support.served import PATIENCE, Served


@pytest.fixture
def serve() -> Iterator[Callable[..., Served]]:
    """Starts the program; whatever was started ends with the test."""
    started: list[Served] = []

    def start(*args: str) -> Served:
        started.append(Served(*args))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.wait(PATIENCE)
        if each.process.stdout is not None:
            each.process.stdout.close()


def test_a_session_is_written_down_ends_with_130_and_is_done_again_to_the_hash(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    """ND-5: extrinsics apart, all inputs, a rewind among them."""
    journal, history = tmp_path / "session.jsonl", tmp_path / "out"
    first = serve("--dev", "--build", "manual", "--journal", str(journal), "--out", str(history))
    first.call("pubsub_publish", 1000, "price", "0x2a")
    first.call("dev_newBlock", {"count": 4})
    first.call("dev_setHead", 3)
    first.call("pubsub_cheat", 2000, ["omit-node"])
    first.call("dev_timeTravel", 7_000_000_000)
    best = first.call("dev_newBlock", {"count": 3})
    assert first.end() == 130
    names = {path.name for path in (history / "history" / "blocks").iterdir()}
    assert names == {"network=node", "network=node-2"}
    again = serve("--replay", str(journal))
    assert again.call("chain_getBlockHash") == best
    assert any("replayed" in line for line in again.said)
    assert again.end() == 130


def _fails(*args: str) -> str:
    done = program("serve", *args)
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.strip().splitlines()
    return line


def test_what_cannot_be_served_is_one_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        journal = tmp_path / "journal.jsonl"
        assert f"port {port}" in _fails("--port", str(port), "--journal", str(journal))
        assert not journal.exists()
    assert "no-such" in _fails("no-such")
    assert "instant" in _fails("--build", "sometimes")
    assert "--unsafe-external" in _fails("--host", "0.0.0.0", "--dev")  # noqa: S104  # refused
    broken = tmp_path / "broken.jsonl"
    broken.write_text("{}\n", encoding="utf-8")
    assert "broken.jsonl:1" in _fails("--replay", str(broken))
    broken.write_bytes(b"\xbd\xff\x00\n")
    assert "broken.jsonl:1: not JSON" in _fails("--replay", str(broken))


def test_a_journal_that_does_not_match_stops_at_its_line(serve: Callable[..., Served], tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    first = serve("--dev", "--build", "manual", "--journal", str(journal))
    first.call("dev_newBlock", {"count": 2})
    assert first.end() == 130
    lines = journal.read_text(encoding="utf-8").splitlines()
    document = json.loads(lines[-1])
    lines[-1] = json.dumps({**document, "relay": "0x" + "11" * 32})
    journal.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert f"journal.jsonl:{len(lines)}" in _fails("--port", "0", "--replay", str(journal))


def test_the_page_shows_blocks_candidates_and_verdicts_as_they_come(
    serve: Callable[..., Served], browser: Browser, tmp_path: Path
) -> None:
    """ND-27."""
    node = serve("--dev", "--build", "manual")
    asked: list[str] = []
    context = browser.new_context()  # on line, unlike those of other pages, and it asks for nothing from elsewhere
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(node.url)
    page.get_by_text("live", exact=True).wait_for()
    node.call("pubsub_cheat", 2000, ["omit-node"])
    node.call("dev_newBlock", {"count": 6})
    page.locator("#candidates tr.rejected").first.wait_for()
    page.locator("#deliveries tr").first.wait_for()
    judged = [each for at in range(2, 8) for each in node.call("pubsub_candidates", 2000, at)]
    refused = len([each for each in judged if each["verdict"]])
    shown = page.locator("#candidates tr.rejected")
    deadline = time.monotonic() + PATIENCE
    while (shown.count(), page.locator("#best").inner_text()) != (refused, "7"):
        assert time.monotonic() < deadline
        page.wait_for_timeout(50)
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        page.screenshot(path=tmp_path / f"live-{width}.png", full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        tables = "[...document.querySelectorAll('.scroll')].every((each) => each.scrollWidth <= each.clientWidth)"
        assert page.evaluate(tables), f"a table is wider than its place at {width}"
    assert all(url.startswith(node.url) for url in asked)
    page.get_by_text("ledgers and tries").click()
    page.wait_for_load_state()
    assert page.title()
    assert not errors
    context.close()
    assert node.end() == 130
