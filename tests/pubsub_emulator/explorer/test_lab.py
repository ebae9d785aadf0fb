"""The live page of a node: what a person sees, steps and attacks, and that `pubsub step` does the
same.
"""

import hashlib
import json
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, WebSocketRoute, expect
from support.explorer.lab import MISPLACED, WIDTHS, Lab, many_blocks
from support.explorer.run_page import open_page
from support.plumbing.axe import faults
from support.plumbing.served import Served

from pubsub_emulator.emulator.scenario.file import parse_scenario
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.session import saved
from pubsub_emulator.session.session import Session

SCROLL = """async (steps) => {
  const strip = document.querySelector(".strip");
  strip.scrollLeft = 0;
  for (let at = 0; at < steps; at++) {
    strip.scrollLeft += 160;
    await new Promise(requestAnimationFrame);
  }
}"""
OpenLab = Callable[..., Lab]


@pytest.fixture(scope="module")
def idle() -> Iterator[Served]:
    """A node for all that build nothing on it."""
    node = Served("node", "--dev", "--build", "manual")
    yield node
    assert int(node.call("chain_getHeader")["number"], 16) == 1, "somebody built"
    node.end()


@pytest.fixture
def lab(browser: Browser) -> Iterator[OpenLab]:
    """Starts a node as `pubsub lab` does; at the end its pages may have done nothing that they must
    not.
    """
    started: list[Lab] = []
    own: list[Served] = []

    def start(*args: str, node: Served | None = None) -> Lab:
        if node is None:
            own.append(node := Served(*(args or ("node",)), "--dev", "--build", "manual"))
        started.append(Lab(node, browser))
        return started[-1]

    yield start
    for context in browser.contexts:
        context.close()
    for each in own:
        each.end()
    faults = [fault for each in started for fault in each.watch.faults]
    if faults:
        pytest.fail("\n".join(faults), pytrace=False)


def played(document: dict[str, Any], folder: Path) -> Session:
    """The session of a file, played again."""
    path = folder / "session.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    made: list[Session] = []
    for _ in saved.read(path, made):
        pass
    return made[0]


def same(here: Lab, folder: Path) -> dict[str, Any]:
    """The file of the node's session, whose lines lead `pubsub step` to the same blocks, each of
    them.
    """
    document: dict[str, Any] = here.node.call("pubsub_session")
    session = played(document, folder)
    assert session.number == here.best()
    for number in range(session.facts.first, session.number + 1):
        assert session.relay_hash(number).hex() == here.node.call("chain_getBlockHash", number)[2:]
    return document


def placed_well(page: Page) -> None:
    """At no width is a text cut or covered."""
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_timeout(100)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
        assert page.evaluate(MISPLACED) == [], width
    page.set_viewport_size({"width": 1400, "height": 900})


def tab(page: Page, name: str) -> None:
    page.click(f"#tab-{name}")


def test_nd27_the_page_shows_blocks_verdicts_and_deliveries_as_they_come(lab: OpenLab) -> None:
    here = lab()
    page = here.open()
    here.node.call("pubsub_cheat", 2000, ["omit-node"])
    here.node.call("dev_newBlock", {"count": 6})
    here.at(page, 7)
    judged = [each for at in range(1, 8) for each in here.node.call("pubsub_candidates", None, at)]
    refused = [each for each in judged if each["verdict"]]
    expect(page.locator(".column .cell.refused")).to_have_count(len(refused))
    expect(page.locator(".column .cell:not(.relay, .news)")).to_have_count(len(judged))
    page.locator(".column .cell.refused").first.click()
    expect(page.locator("#detail .verdict .badge")).to_have_text(refused[0]["verdict"])
    expect(page.locator("#detail .evidence").first).to_contain_text(refused[0]["verdict"])
    expect(page.locator("#detail .drawn .field svg.trie")).to_be_visible()


def test_the_first_steps_lead_from_a_value_to_a_caught_cheat(
    lab: OpenLab,
) -> None:
    here = lab()
    page = here.open()
    for done, button in enumerate(
        ("Publish it", "Subscribe to it", "Build blocks", "Give it the cheat", "Build blocks")
    ):
        page.locator(".guide li.now").get_by_role("button", name=button).click()
        expect(page.locator(".guide li.did")).to_have_count(done + 1)
        if button == "Publish it":  # the form repeats what was done
            expect(page.locator("#panel form [name=ttl]")).to_have_value("40")
    expect(page.locator("#detail .verdict .badge.refused")).to_be_visible()
    evidence = page.locator("#detail .candidate > .verdict .evidence")
    expect(evidence).to_contain_text("A node that the walk needs is missing")
    expect(evidence).to_contain_text(
        re.compile("is missing on the way to (?!key [0-9a-f]{9}).* when [0-9,]+ of the ")
    )
    expect(page.locator(".follow .journey")).to_contain_text("delivered to 2000")
    expect(page.locator(".way path")).to_have_count(2)
    caught = here.best()
    here.step(page)  # the newest block is chosen, one that the user chose stays
    expect(page.locator("#detail h2").first).to_contain_text(f"block {caught + 1}")
    expect(page.locator("#detail .candidate")).to_contain_text(f"relay block {caught + 1}")
    page.locator("[aria-label='relay block 1']").click()
    here.step(page)
    expect(page.locator("#detail h2").first).to_have_text("Relay block 1")
    expect(page.locator(".guide li.did")).to_have_count(5)
    page.locator(".column .cell.delivers").last.click()
    tab(page, "branches")
    page.get_by_role("button", name="Fork from").click()
    expect(page.locator(".guide li.did")).to_have_count(3)
    here.step(page)
    expect(page.locator(".guide li.did")).to_have_count(3)
    page.get_by_role("button", name="switch to main").click()
    expect(page.locator(".guide li.did")).to_have_count(5)
    other = here.open()
    other.locator(".column .cell.delivers").last.click()
    expect(other.locator("#detail .keys")).to_contain_text('price of 1000 to 2000 "7.42"')
    expect(other.locator("#detail .field")).to_contain_text("price")


def test_branches_are_the_same_after_a_reload_and_on_another_page(lab: OpenLab) -> None:
    here = lab()
    page = here.open()
    here.step(page, "Step 10")
    newest = here.best()
    tab(page, "branches")
    page.locator(".branches input").fill("second")
    page.get_by_role("button", name="Fork from").click()
    expect(page.locator(".branches p").first).to_contain_text("On branch second")
    other = here.open()
    tab(other, "branches")
    page.reload()
    tab(page, "branches")
    for shown in (page, other):
        expect(shown.locator(".branches p").first).to_contain_text("On branch second")
        expect(shown.locator(".others li")).to_have_count(1)
        expect(shown.locator(".others li")).to_contain_text(f"main at {newest}")
    page.get_by_role("button", name="switch to main").click()
    for shown in (page, other):
        expect(shown.locator(".branches p").first).to_contain_text("On branch main")
        expect(shown.locator(".others li")).to_contain_text("second at")
    here.at(page, newest)


def test_compared_branches_differ_or_have_blocks_that_the_other_has_not(lab: OpenLab) -> None:
    here = lab()
    page = here.open()
    here.step(page, "Step 10")
    newest = here.best()
    tab(page, "branches")
    page.locator(".branches input").fill("second")
    page.locator(f"[aria-label='relay block {newest - 3}']").click()
    page.get_by_role("button", name="Fork from").click()
    expect(page.locator(".branches p").first).to_contain_text("On branch second")
    here.act(page, "publish", key="price", value="1")
    here.step(page)
    tab(page, "branches")
    page.get_by_role("button", name="compare with main").click()
    compared = page.locator("table.compared")
    expect(compared.locator("caption")).to_have_text(
        f"1 relay block differs, from {newest - 2} on; 2 relay blocks exist on main only."
    )
    kinds = compared.locator("tbody td:nth-child(2)")
    expect(kinds).to_have_text(["differs", "only on main", "only on main"])
    expect(compared.locator("tbody tr").last).to_contain_text("no block")


def test_the_page_names_the_last_act_and_the_one_to_undo(lab: OpenLab) -> None:
    here = lab()
    page = here.open()
    last = page.locator(".last code")
    here.act(page, "publish", key="price", value="7.42", ttl="6")
    expect(last.last).to_have_text(re.compile("^publish 1000 0x[0-9a-f]{64} 0x372e3432 6$"))
    expect(last.first).to_contain_text('"pubsub_act"')
    page.select_option("select[aria-label='Until what happens']", "expiry")
    here.step(page, "Until")
    expect(last.last).to_have_text("until event KeyExpired")
    expect(page.get_by_role("button", name="Undo")).to_have_text("Undo “until an expiry”")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#said")).to_contain_text("undone: “until an expiry”")
    expect(page.get_by_role("button", name="Undo")).to_have_text("Undo “Publish a value”")
    expect(last).to_have_count(1)  # no line of `pubsub step` does the same
    expect(last).to_contain_text("dev_restore")


def test_on_a_phone_a_tapped_square_brings_its_card_into_view(lab: OpenLab) -> None:
    here = lab("demo")
    here.node.call("dev_newBlock", {"count": 4})
    page = here.open(390, reduced_motion="reduce", has_touch=True)
    card = page.locator("#detail .verdict")
    page.locator(".column .cell.refused").first.tap()
    page.wait_for_selector("#detail .field svg.trie", state="attached")
    expect(card).to_be_in_viewport(ratio=0.5)
    top = page.locator("#detail").bounding_box()
    assert top is not None
    assert 0 <= top["y"] < 100
    page.get_by_role("button", name="Leave a message out").click()
    expect(page.locator("#act")).to_be_in_viewport()


def test_requested_keys_messages_and_descendants_are_shown_and_tampered_with(
    lab: OpenLab,
) -> None:
    here = lab()
    page = here.open()
    here.act(page, "request", para="2000", keys="Mmr.RootHash System.Number")
    here.node.call("pubsub_order", 2000, "clear_publisher_cache", 1000)
    here.step(page, "Step 10")
    page.locator(".column .cell.delivers, .column .cell.quiet").last.click()
    requested = page.locator("#detail .input-requested")
    expect(requested).to_contain_text("Requested keys: 2")
    expect(requested.locator("tbody tr").first).to_contain_text("Mmr.RootHash")
    expect(page.locator("#detail .input-descendants")).to_contain_text("Descendants")
    requested.get_by_role("button", name="Keep a value back").click()
    expect(page.locator("#panel form [name=strategy]")).to_have_value("omit-requested-key")
    page.locator("#panel form .tried").get_by_text("This would be sent").wait_for()
    page.locator("#panel form button[type=submit]:enabled").click()
    expect(page.locator("#said")).to_contain_text("requested")
    page.select_option("select[aria-label='Until what happens']", "refusal")
    here.step(page, "Until")
    expect(page.locator("#detail .verdict")).to_contain_text("omit-requested-key")
    for button, name in (("Hash all downward", "hold-back-downward"), ("Add a header", "unwanted")):
        page.locator("#detail").get_by_role("button", name=button).click()
        expect(page.locator("#panel form [name=strategy]")).to_have_value(re.compile(name))


def test_a_page_of_another_port_cannot_call_the_lab(idle: Served, browser: Browser) -> None:
    """An attacker's page on the user's own machine, in a browser that the user browses with."""
    before = idle.call("chain_getHeader")["number"]
    attack = """async (lab) => {
      const body = JSON.stringify({
        jsonrpc: "2.0", id: 1, method: "dev_newBlock", params: [{ count: 1 }],
      });
      const socket = new Promise((done) => {
        const opened = new WebSocket(lab.replace("http", "ws"));
        opened.onopen = () => { opened.send(body); done("open"); };
        opened.onerror = () => done("refused");
      });
      const asked = (type) =>
        fetch(lab, { method: "POST", headers: { "Content-Type": type }, body }).then(
          (answer) => answer.status, () => "refused");
      const blind = fetch(lab, { method: "POST", mode: "no-cors", body }).then(() => "sent");
      return [await socket, await asked("application/json"), await asked("text/plain"),
        await blind];
    }"""
    with served_elsewhere() as elsewhere:
        page = browser.new_context().new_page()
        page.goto(elsewhere)
        assert page.evaluate(attack, idle.url) == ["refused", "refused", "refused", "sent"]
        page.context.close()
    assert idle.call("chain_getHeader")["number"] == before


@contextmanager
def served_elsewhere() -> Iterator[str]:
    """The address of a page that another server of this machine serves."""

    class Empty(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<title>elsewhere</title>")

        def log_message(self, *_: object) -> None:
            """Write no line."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Empty) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


def test_a_story_of_every_act_equals_pubsub_step_block_by_block(
    lab: OpenLab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here = lab()
    page = here.open(accept_downloads=True)
    here.act(page, "publish", key="price", value="7.42", ttl="6")
    here.act(page, "subscribe", keys="price")
    here.step(page, "Step 10")
    here.act(page, "register", para="2001")
    here.act(page, "limit", value="8388608")
    here.act(page, "cheat", strategy="omit-node")
    page.select_option("select[aria-label='Until what happens']", "refusal")
    here.step(page, "Until")
    expect(page.locator("#said")).to_contain_text("a refusal in relay block")
    here.act(page, "honest")
    here.act(page, "offline", para="2000")
    here.step(page)
    here.act(page, "online", para="2000")
    here.act(page, "publish", key="price", value="0x00ff", ttl="3")
    here.step(page)
    before = here.best()
    here.step(page)
    page.get_by_role("button", name="Undo").click()
    here.at(page, before)
    tab(page, "branches")
    page.locator(".strip").press("Home")
    for _ in range(4):
        page.locator(".strip").press("ArrowRight")
    expect(page.get_by_role("button", name="Fork from 5")).to_be_enabled()
    page.get_by_role("button", name="Fork from 5").click()
    here.at(page, 5)
    here.act(page, "unsubscribe", keys="price")
    here.act(page, "delete", keys="1000/1")
    here.act(page, "deregister", para="1000")
    here.step(page, "Step 10")
    tab(page, "branches")
    page.get_by_role("button", name="compare with main").click()
    expect(page.locator("table.compared")).to_contain_text("differ, from 6 on")
    placed_well(page)
    same(here, tmp_path)
    page.get_by_role("button", name="switch to main").click()
    here.at(page, before)
    document = same(here, tmp_path)
    assert any(line.startswith("cheat 2000 omit-node") for line in document["commands"])
    tab(page, "session")
    page.wait_for_selector(f".session[data-block='{before}']")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save for pubsub step").click()
    assert json.loads(Path(download.value.path()).read_text(encoding="utf-8")) == document
    with page.expect_download() as download:
        page.get_by_role("button", name="as a scenario").click()
    text = Path(download.value.path()).read_text(encoding="utf-8")
    assert 'key = "price", value = "7.42", ttl = 6' in text
    simulation = Simulation(parse_scenario(text, "saved.toml"))
    simulation.run()
    assert simulation.network.number == before
    assert hexed(simulation.network.relay.blocks[-1].header.hash()) == document["hash"]
    with page.expect_download() as download:
        page.get_by_role("button", name="as Python").click()
    source = Path(download.value.path()).read_text(encoding="utf-8")
    exec(compile(source, "saved.py", "exec"), {})  # noqa: S102  # what a user would run; it checks the hash itself
    said = capsys.readouterr().out
    assert f"relay block {before}" in said
    assert "Line(" not in said
    with page.expect_download() as download:
        page.get_by_role("button", name="as one page to share").click()
    shared = Path(download.value.path()).read_text(encoding="utf-8")
    assert "The session that led here" in shared
    assert open_page(shared).index["built"] == before


def test_an_act_that_would_fail_says_why_before_it_is_sent(lab: OpenLab, idle: Served) -> None:
    page = lab(node=idle).open()
    for name, field, value, why in (
        ("limit", "value", "1", "max_pov_size 1"),
        ("unsubscribe", "keys", "nothing", "does not subscribe"),
        ("register", "deposit", str(2**128 - 1), "a call on the relay chain"),
        ("publish", "value", "0x0", "hexadecimal"),
        ("publish", "key", "", "a key's name has at least one character"),
        ("publish", "ttl", "soon", "ttl: a whole number is expected"),
    ):
        page.select_option("#act", name)
        page.locator(f"#panel form [name={field}]").fill(value)
        expect(page.locator("#panel .tried.no")).to_contain_text(why)
        expect(page.locator("#panel form button[type=submit]")).to_be_disabled()


def test_a_followed_key_shows_its_way_and_its_lifetime_runs_down(lab: OpenLab) -> None:
    here = lab()
    page = here.open()
    here.act(page, "subscribe", keys="short")
    here.act(page, "publish", key="short", value="x", ttl="5")
    here.node.call("dev_newBlock", {"count": 2})
    here.at(page, 3)
    page.locator(".strip").press("End")
    page.locator(".strip").press("ArrowUp")
    page.get_by_role("button", name="short", exact=True).first.click()
    expect(page.locator(".follow .ttl")).to_contain_text("5 of 5 blocks left")
    here.node.call("dev_newBlock", {"count": 2})
    expect(page.locator(".follow .ttl")).to_contain_text("3 of 5 blocks left")
    expect(page.locator(".follow .journey")).to_contain_text("delivered to 2000")
    placed_well(page)
    here.node.call("dev_newBlock", {"count": 6})
    expect(page.locator(".follow .journey .expired")).to_have_count(1)
    expect(page.locator(".follow .journey .removed")).to_contain_text("2000 was told")
    expect(page.locator(".way path")).to_have_count(2)  # sent, delivered: none past its removal


def test_a_block_that_is_built_while_the_page_opens_is_the_newest(lab: OpenLab) -> None:
    here = lab()

    def opened(socket: WebSocketRoute) -> None:
        node = socket.connect_to_server()

        def sent(text: str | bytes) -> None:
            if "pubsub_subscribeColumns" in str(text):
                here.node.call("dev_newBlock", {"count": 1})
            node.send(text)

        socket.on_message(sent)

    page = here.open(ready=lambda page: page.route_web_socket("**/*", opened))
    here.at(page, 2)


def test_a_page_that_was_away_says_so_and_lacks_nothing(lab: OpenLab) -> None:
    here = lab()
    page = here.open()
    page.evaluate("window.sockets.at(-1).close()")
    here.node.call("dev_newBlock", {"count": 30})
    expect(page.locator("#state")).to_contain_text("nothing is missing")
    here.at(page, 31)
    expect(page.locator(".column .cell.relay, .column .cell.news")).to_have_count(31)


def test_two_pages_of_one_node_see_the_same(lab: OpenLab) -> None:
    here = lab()
    pages = [here.open(), here.open(390)]
    here.act(pages[0], "cheat", strategy="omit-node")
    here.step(pages[1], "Step 10")
    here.step(pages[0])
    here.step(pages[0])
    undo = pages[1].get_by_role("button", name="Undo “step 1”", exact=True)
    undo.click()  # what another page did
    here.at(pages[1], 12)
    expect(undo).to_be_visible()
    expect(pages[0].get_by_role("button", name="Undo “step 1”", exact=True)).to_be_visible()
    assert [each["what"] for each in here.node.call("pubsub_undos")] == [
        "Give a collator a cheat",
        "step 10",
        "step 1",
    ]
    shown = []
    for page in pages:
        here.at(page, 12)
        page.set_viewport_size({"width": 1400, "height": 900})
        expect(page.locator(".column .cell.relay, .column .cell.news")).to_have_count(12)
        tab(page, "session")
        page.wait_for_selector(".session[data-block='12']")
        shown.append(
            (page.locator(".session ol").inner_text(), page.locator(".sheet").inner_html())
        )
    assert shown[0] == shown[1]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_width_cuts_or_covers_a_word_and_axe_finds_nothing_serious(
    lab: OpenLab, scheme: str
) -> None:
    """Places do not depend on colours: they are looked at in the light."""
    here = lab("demo")
    here.node.call("dev_newBlock", {"count": 6})
    for width in WIDTHS:
        page = here.open(width, color_scheme=scheme, reduced_motion="reduce")
        page.locator(".column .cell.refused").first.click()
        page.wait_for_selector("#detail .verdict .evidence")
        page.wait_for_selector("#detail .field svg.trie", state="attached")
        for name in ("acts", "branches", "session", "charts", "accounts"):
            of_axe = name == "acts" or width == WIDTHS[0]
            if scheme == "dark" and not of_axe:
                continue
            tab(page, name)
            page.wait_for_timeout(300)
            if scheme == "light":
                assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (
                    width,
                    name,
                )
                assert page.evaluate(MISPLACED) == [], (width, name)
            assert not of_axe or faults(page) == [], (width, name)
        page.context.close()


def test_a_hostile_chain_cannot_break_the_page(lab: OpenLab) -> None:
    name = "<img src=x onerror=document.title='taken'>"
    here = lab()
    page = here.open()
    here.act(page, "publish", key=name, value="</script><script>document.title='taken'</script>")
    here.act(page, "subscribe", keys="k" * 100_000)
    for at in range(40):
        action = {
            "kind": "publish",
            "para": 1000,
            "key": f"{at}" * 25_000,
            "value": "0x" + "3c" * 2048,
            "ttl": 0,
        }
        here.node.call("pubsub_act", action)
    here.node.call("dev_newBlock", {"count": 4})
    here.at(page, 5)
    for at in range(5):
        page.locator(".strip").press("End" if not at else "ArrowLeft")
        page.locator(".strip").press("ArrowUp")
        page.wait_for_selector("#detail article")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    tab(page, "session")
    page.wait_for_selector(".session[data-block='5']")
    assert page.title() == "pubsub lab"
    assert page.locator("img").count() == 0


def test_only_visible_blocks_are_requested_out_of_ten_thousand(lab: OpenLab, idle: Served) -> None:
    page = lab(node=idle).open(
        ready=lambda page: page.route_web_socket("**/*", many_blocks(10_000, 12))
    )
    page.wait_for_selector("[aria-label='relay block 10000']")
    for press, seen in (("Home", 1), ("End", 10_000)):
        page.locator(".strip").press(press)
        page.wait_for_selector(f"[aria-label='relay block {seen}']")
        page.wait_for_selector(f"[aria-label^='parachain 2011, block {seen} ']")
        assert page.locator(".column").count() < 150
    page.evaluate(SCROLL, 60)
    page.wait_for_selector("[aria-label^='parachain 2011, block 500 ']")


def test_blocks_of_a_million_events_are_shown_in_part_and_followed(
    lab: OpenLab, idle: Served
) -> None:
    page = lab(node=idle).open(
        ready=lambda page: page.route_web_socket("**/*", many_blocks(2_000, 2, 1_000_000))
    )
    page.wait_for_selector("[aria-label^='parachain 2001, block 2000 ']")
    page.locator("[aria-label='relay block 2000']").click()
    expect(page.locator("#detail .relay-block")).to_contain_text("1,000,000 keys")
    assert page.locator("#detail li").count() < 260
    page.locator("#detail .key-name").first.click()
    expect(page.locator(".follow .journey li")).to_have_count(24)
    page.evaluate(SCROLL, 20)
    page.wait_for_selector("[aria-label^='parachain 2001, block 200 ']")
    assert page.locator("body *").count() < 5_000
    placed_well(page)


def test_everything_is_reached_by_keyboard(lab: OpenLab) -> None:
    here = lab()
    page = here.open()
    page.locator("body").press("t")
    here.at(page, 11)
    page.wait_for_function("() => !document.querySelector('.steps-bar button.primary').disabled")
    page.locator("body").press("n")
    here.at(page, 12)
    page.wait_for_function("() => !document.querySelector('.steps-bar button.primary').disabled")
    page.locator("body").press("u")
    here.at(page, 11)
    page.locator("#tab-acts").focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    expect(page.locator("#tab-charts")).to_be_focused()
    expect(page.locator("#tab-charts")).to_have_attribute("aria-selected", "true")
    plot = page.locator(".plot").first
    plot.press("ArrowLeft")
    expect(page.locator(".chart .read").first).to_contain_text("relay block 11: 1000")
    plot.press("Home")
    expect(page.locator(".chart .read").first).to_contain_text("relay block 1: 1000")
    word = page.locator("header .word").first
    word.focus()
    expect(page.get_by_role("tooltip")).to_contain_text("chain that keeps")
    page.keyboard.press("Escape")
    expect(page.get_by_role("tooltip")).to_have_count(0)


def test_the_words_of_the_page_are_those_of_the_glossary() -> None:
    root = Path(__file__).parents[3]
    words = (root / "pubsub_emulator/pages/assets/lab/glossary.js").read_text(encoding="utf-8")
    listed = re.search(r"const GLOSSARY = \{(.*?)\n\};", words, re.DOTALL)
    assert listed is not None
    glossary = (root / "docs/glossary.md").read_text(encoding="utf-8").lower()
    for word in re.findall(r'^  "?([a-zA-Z ]+)"?:', listed[1], re.MULTILINE):
        assert f"**{word.lower()}" in glossary, word


def test_the_vendored_libraries_are_those_that_their_table_names() -> None:
    folder = Path(__file__).parents[3] / "pubsub_emulator/pages/assets/vendor"
    table = (folder / "README.md").read_text(encoding="utf-8")
    named = dict(re.findall(r"^\| (\S+) \| \S+ \| ([0-9a-f]{64}) \|$", table, re.MULTILINE))
    files = {each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in folder.iterdir()}
    files.pop("README.md")
    assert files == named


def test_pubsub_lab_and_serve_print_the_pages_address_and_the_account_warning(
    idle: Served,
) -> None:
    said = "\n".join(idle.said)
    assert re.search(r"in a browser: http://127\.0\.0\.1:\d+/", said)
    assert "//Alice" in said
    assert "bottom drive obey" in said
    plain = Served("node", command=("lab", "--no-open"))
    try:
        assert plain.call("dev_newBlock", {"count": 2})
        assert plain.call("rpc_methods")
        assert "parachain 2000: ws://127.0.0.1:" in "\n".join(plain.said)
    finally:
        assert plain.end() == 130


def test_the_page_may_ask_for_nothing_from_elsewhere(idle: Served) -> None:
    url = idle.url
    for path in ("", "page/lab/main.js", "page/vendor/uplot.css"):
        with urllib.request.urlopen(url + path) as answer:  # noqa: S310  # our own URL
            policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy
        assert "http" not in policy
    with pytest.raises(urllib.error.HTTPError) as missing:
        urllib.request.urlopen(f"{url}page/../../pyproject.toml")  # noqa: S310  # as above
    assert missing.value.code == 404


def test_a_node_that_takes_no_acts_shows_all_the_rest(browser: Browser) -> None:
    node = Served("node")
    try:
        here = Lab(node, browser)
        page = here.open()
        expect(page.get_by_role("tab")).to_have_text(["Session", "Figures", "Endpoints"])
        expect(page.locator("header")).to_contain_text("takes no acts")
        expect(page.locator(".session ol")).to_contain_text("turn 1000")
        page.context.close()
        assert here.watch.faults == []
    finally:
        node.end()
