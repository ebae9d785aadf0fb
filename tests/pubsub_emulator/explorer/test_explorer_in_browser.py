"""The page of a run as a person uses it: opened from a file, offline, in a phone's window and a
desktop's.
"""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from support.explorer.run_page import Explored
from support.plumbing.browser import DESKTOP, PHONE, NewPage, ViewportSize, overflows, show

from pubsub_emulator.emulator.network.records import BlockRecord
from pubsub_emulator.emulator.scenario.file import parse_scenario
from pubsub_emulator.explorer.block_tree import draw_block
from pubsub_emulator.explorer.page import explore
from pubsub_emulator.explorer.recorder import walk_again
from pubsub_emulator.explorer.svg import arrange, render
from pubsub_emulator.explorer.words import with_names
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.runtime.parachain.block import Verdict

HOSTILE = "</script><img src=x onerror=\"document.title='taken'\"><b>bold</b>&amp;"
SQUARES = ".column .cell:not(.relay, .news)"
"""The squares of candidates."""


@pytest.fixture(scope="module")
def file(explored: Explored, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("explorer") / "run.html"
    path.write_text(explored.text, encoding="utf-8")
    return path


def opened(page: Page, file: Path, name: str = "", size: ViewportSize = DESKTOP) -> Page:
    """The page at a block: `c` and a candidate's place, `r` and a relay block's number."""
    show(page, file, size)
    page.wait_for_selector("article")
    if name:
        page.evaluate(f"location.hash = '{name}'")
        at_block(page, name)
    return page


def at_block(page: Page, name: str) -> None:
    page.wait_for_selector(f"article[data-block={name}]")


def refused_for(verdict: Verdict) -> Callable[[BlockRecord], bool]:
    return lambda block: block.refusal is not None and block.refusal.verdict is verdict


def here(page: Page) -> int:
    """The candidate that is shown."""
    return int((page.locator("article").get_attribute("data-block") or "")[1:])


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_no_block_makes_the_page_too_wide(
    page: Page, file: Path, explored: Explored, size: ViewportSize
) -> None:
    opened(page, file, size=size)
    assert not overflows(page)
    blocks = explored.told.blocks
    kinds: list[Callable[[BlockRecord], bool]] = [
        lambda block: block.outcome is not None and len(block.outcome.deliveries) > 5,
        lambda block: block.outcome is not None and block.outcome.plan.cursor is not None,
        refused_for(Verdict.UNUSED_NODES),
        refused_for(Verdict.OMITTED_BELOW_BUDGET),
    ]
    largest = max(range(len(blocks)), key=lambda at: len(blocks[at].candidate.inherent.proof))
    names = [*(f"c{explored.first(kind)}" for kind in kinds), f"c{largest}", "r5"]
    for name in names:
        page.evaluate(f"location.hash = '{name}'")
        at_block(page, name)
        for fold in page.locator("details:not([open]) summary").all():
            fold.click()
        assert not overflows(page), name


def test_the_page_opens_with_its_figures_and_a_block(
    page: Page, file: Path, explored: Explored
) -> None:
    opened(page, file)
    refused = sum(block.refusal is not None for block in explored.told.blocks)
    expect(page.locator("h1")).to_have_text("explored")
    expect(page.locator("#figures")).to_contain_text(
        f"26 relay blocks, {len(explored.told.blocks)} candidates, {refused} refused"
    )
    shown = page.locator(SQUARES).count()
    assert shown == sum(block.chain >= 3000 for block in explored.told.blocks)
    assert page.locator(".column .cell.refused").count() == refused


def test_a_click_on_a_square_shows_ledger_and_proof_of_its_block(
    page: Page, file: Path, explored: Explored
) -> None:
    opened(page, file)
    at = explored.first(
        lambda block: block.outcome is not None and len(block.outcome.deliveries) > 3
    )
    page.locator(f"#timeline [data-name=c{at}]").click()
    at_block(page, f"c{at}")
    block = explored.told.blocks[at]
    assert block.outcome is not None
    ledger = block.outcome.ledger
    expect(page.locator("h2")).to_contain_text(f"{block.chain} ")
    expect(page.locator("h2")).to_contain_text(f"block {block.candidate.header.number}")
    article = page.locator("article").inner_text()
    assert block.candidate.hash().hex() in article
    assert f"{ledger.proof_nodes} nodes" in article
    rows = page.locator("section", has_text="Where its bytes went").locator("tbody tr")
    assert rows.count() == len(ledger.publishers)
    expect(rows.first).to_contain_text(str(ledger.publishers[0].para))
    deliveries = page.locator("section", has=page.locator("h3", has_text="Deliveries")).locator(
        "tbody tr"
    )
    assert deliveries.count() == len(block.outcome.deliveries)


def test_the_page_paints_what_python_draws(page: Page, file: Path, explored: Explored) -> None:
    opened(page, file)
    blocks = explored.told.blocks
    wanted = {
        len(block.candidate.inherent.proof): at
        for at, block in enumerate(blocks)
        if block.chain >= 3000
    }
    for at in list(wanted.values())[::6]:
        page.evaluate(f"location.hash = 'c{at}'")
        at_block(page, f"c{at}")
        walked = walk_again(blocks[at], explored.told.before[at])
        trees = draw_block(
            blocks[at], walked and walked.plan, explored.names, walked and walked.start
        )
        svg = render(arrange(trees))
        painted = page.locator(".field svg").evaluate(
            "svg => new XMLSerializer().serializeToString(svg)"
        )
        assert marks(painted) == marks(svg)


def marks(svg: str) -> list[str]:
    """A drawing's size, edges, places with their shapes and colours, and words; not tooltips and
    its own style.
    """
    plain = re.sub(
        r"<title>.*?</title>|<style>.*?</style>| xmlns=\"[^\"]*\"", "", svg, flags=re.DOTALL
    )
    sizes = re.findall(r"(?:width|height)=\"\d+\"", plain)[:2]
    return sizes + re.findall(r"<(?:g|path|circle|text|tspan)[^>]*>[^<]*", plain.replace("/>", ">"))


def test_a_node_of_a_proof_shows_its_hash_and_its_bytes(
    page: Page, file: Path, explored: Explored
) -> None:
    at = explored.first(
        lambda block: block.outcome is not None and len(block.candidate.inherent.proof) > 30
    )
    opened(page, file, f"c{at}")
    root = explored.told.blocks[at].candidate.inherent.relay_parent_storage_root
    node = next(
        node
        for node in explored.told.blocks[at].candidate.inherent.proof
        if node_hash(node) == root.hex()
    )
    page.locator(".field svg").click(position={"x": 12, "y": 12})
    expect(page.locator(".panel")).to_contain_text(f"0x{root.hex()}")
    expect(page.locator(".panel pre")).to_have_text(node.hex())
    page.locator(".field text", has_text="Babe.CurrentSlot").click()
    expect(page.locator(".panel")).to_contain_text("Babe.CurrentSlot")
    page.locator(".field").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".field .chosen")).to_have_attribute("data-n", "1")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".field .chosen")).to_have_attribute("data-n", "0")
    at_block(page, f"c{at}")


def node_hash(node: bytes) -> str:
    return blake2_256(node).hex()


def test_a_refused_block_says_why(page: Page, file: Path, explored: Explored) -> None:
    at = explored.first(refused_for(Verdict.OMITTED_BELOW_BUDGET))
    opened(page, file, f"c{at}")
    refusal = explored.told.blocks[at].refusal
    assert refusal is not None
    expect(page.locator(".refusal")).to_contain_text(
        with_names(refusal.evidence[0].detail, explored.names)
    )
    expect(page.locator(".refusal")).to_contain_text("A node that the walk needs is missing")
    assert page.locator(".field g.m").count() == 1


def test_search_finds_blocks_by_what_is_known_of_them(
    page: Page, file: Path, explored: Explored
) -> None:
    opened(page, file)
    at = explored.first(
        lambda block: block.outcome is not None and len(block.outcome.deliveries) > 3
    )
    block = explored.told.blocks[at]
    assert block.outcome is not None
    delivery = block.outcome.deliveries[0]
    collator = explored.simulation.network.parachain(3000).collators[1].key
    node = next(each for each in block.candidate.inherent.proof if len(each) > 40)
    results = page.locator("#results button")

    def looks_up(query: str, expected: str) -> None:
        page.fill("#search", query)
        expect(results.filter(has_text=expected).first).to_be_visible()

    looks_up("12", "relay block 12")
    looks_up("12", "block 12")
    looks_up("0x" + block.candidate.hash().hex()[:12], f"block {block.candidate.header.number}")
    looks_up(delivery.key.hex(), "is delivered")
    looks_up(explored.names.key(delivery.key), "publishes")
    looks_up(str(delivery.publisher), f"chain {delivery.publisher}")
    looks_up(collator.hex()[:10], "turn of collator 2")
    looks_up("unusednodes", "UnusedNodes")
    assert page.locator(".column .hit").count() == sum(
        each.refusal is not None and each.refusal.verdict is Verdict.UNUSED_NODES
        for each in explored.told.blocks
    )
    looks_up(node_hash(node)[:20], "draws node")
    page.fill("#search", "no such thing")
    expect(page.locator("#results")).to_contain_text("Nothing found")
    looks_up("0x" + block.candidate.hash().hex(), f"block {block.candidate.header.number}")
    page.keyboard.press("Enter")
    at_block(page, f"c{at}")
    page.focus("#search")
    page.keyboard.press("Escape")
    expect(page.locator("#results")).to_be_hidden()
    expect(page.locator("#search")).to_have_value("")


def test_another_chain_can_be_chosen(page: Page, file: Path, explored: Explored) -> None:
    opened(page, file)
    page.select_option("#chain", "1000")
    expect(page.locator("h2").first).to_have_text(re.compile(r"^1000"))
    assert explored.told.blocks[here(page)].chain == 1000
    count = sum(block.chain == 1000 for block in explored.told.blocks)
    assert page.locator(SQUARES).count() == count
    page.select_option("#chain", "all")
    assert page.locator(SQUARES).count() == len(explored.told.blocks)


def test_keys_move_through_time_and_chains(page: Page, file: Path, explored: Explored) -> None:
    blocks = explored.told.blocks
    mine = [at for at, block in enumerate(blocks) if block.chain == 3001]
    opened(page, file, f"c{mine[3]}")
    page.keyboard.press("ArrowRight")
    at_block(page, f"c{mine[4]}")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    at_block(page, f"c{mine[2]}")
    page.keyboard.press("x")
    expected = next(
        at for at, block in enumerate(blocks) if at > mine[2] and block.refusal is not None
    )
    at_block(page, f"c{expected}")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    page.keyboard.press("Escape")
    page.evaluate(f"location.hash = 'c{mine[3]}'")
    at_block(page, f"c{mine[3]}")
    page.locator(".strip").focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator("h2").first).to_have_text(re.compile(r"^3002"))
    assert blocks[here(page)].chain == 3002
    page.keyboard.press("ArrowUp")
    expect(page.locator("h2").first).to_have_text(re.compile(r"^3001"))


def test_a_relay_block_lists_its_candidates_and_what_it_published(
    page: Page, file: Path, explored: Explored
) -> None:
    counts = {row["number"]: len(row["keys"]) for row in explored.page.index["relay"]}
    most, fewest = max(counts, key=counts.__getitem__), min(counts, key=counts.__getitem__)
    assert counts[most] > 12 >= counts[fewest]
    opened(page, file, f"r{fewest}")
    expect(page.locator("article")).not_to_contain_text("Published: ")
    page.evaluate(f"location.hash = 'r{most}'")
    at_block(page, f"r{most}")
    expect(page.locator("dl.facts").first).to_contain_text(f"{counts[most]} keys")
    expect(page.locator("article")).to_contain_text(f"Published: {counts[most]} keys")
    assert page.locator("ul.lines").first.locator("li").count() == counts[most]
    judged = [block for block in explored.told.blocks if block.included_at == most]
    assert page.locator(".links li").count() == len(judged)
    hashes = {each.number: each.hash.hex() for each in explored.told.relay}
    expect(page.locator("article")).to_contain_text(hashes[most])
    expect(page.locator("article")).to_contain_text("Broadcaster.DataPublished")
    page.locator(".links button").first.click()
    assert page.wait_for_selector("article[data-block^=c]")
    assert explored.told.blocks[here(page)].included_at == most


def test_only_of_an_accepted_block_is_pruning_said_to_save(
    page: Page, file: Path, explored: Explored
) -> None:
    blocks = explored.told.blocks
    for accepted in (False, True):
        at = next(at for at, each in enumerate(blocks) if (each.refusal is None) == accepted)
        opened(page, file, f"c{at}")
        assert ("pruning saves" in page.locator("article").inner_text()) == accepted


def test_dark_and_light_follow_the_reader(new_page: NewPage, file: Path) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    dark = opened(new_page(color_scheme="dark"), file)
    light = opened(new_page(color_scheme="light"), file)
    assert dark.evaluate(background) != light.evaluate(background)
    light.click("#theme")
    assert dark.evaluate(background) == light.evaluate(background)
    light.click("#theme")
    assert dark.evaluate(background) != light.evaluate(background)


def test_hostile_names_are_shown_as_they_are(page: Page, tmp_path: Path) -> None:
    scenario = parse_scenario(
        'name = "n"\nseed = "n"\nrelay_blocks = 4\n[[publishers]]\nparas = [1000]\nkeys ='
        " 2\nvalue_size = 9\n[[subscribers]]\npara = 3000\nsubscribe = [{ publishers = [1000] }]\n",
        "n.toml",
    )
    named = scenario.subscribers[0].model_copy(update={"name": HOSTILE})
    hostile = scenario.model_copy(
        update={"name": HOSTILE, "description": HOSTILE, "subscribers": (named,)}
    )
    file = tmp_path / "hostile.html"
    file.write_text(explore(hostile), encoding="utf-8")
    opened(page, file)
    expect(page.locator("h1")).to_have_text(HOSTILE)
    expect(page.locator("h2")).to_contain_text(HOSTILE)
    page.fill("#search", "bold")
    expect(page.locator("#results")).to_contain_text(HOSTILE)
    assert page.locator("img, b:text-is('bold')").count() == 0
    assert page.title() != "taken"
