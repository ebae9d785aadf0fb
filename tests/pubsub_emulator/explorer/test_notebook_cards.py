"""Objects in a notebook: IPython's own formatters, told of our types by `%load_ext
pubsub_emulator.explorer`.
"""

import json
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from pubsub_emulator.emulator.network import Network, Step
from pubsub_emulator.emulator.network.records import BlockRecord
from pubsub_emulator.emulator.state_diff import diff_states
from pubsub_emulator.explorer.cards import CARDS, picture_of_proof
from pubsub_emulator.primitives.pubsub import derive_child_key, key_from_data
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.trie import Trie

ROOT = Path(__file__).resolve().parents[3]
HOSTILE = b"<script>alert(1)</script>"
KEY = key_from_data(b"DOT/USD")


class Balanced(HTMLParser):
    """Every element that is opened is closed, in order, and none is a script."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag != "script"
        assert not any(name.startswith("on") for name, _ in attrs)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag != "br":
            assert self.open.pop() == tag


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InteractiveShell]:
    """A shell that writes nothing into anybody's home."""
    settings = Config()
    settings.HistoryManager.enabled = False
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IPYTHONDIR", str(tmp_path_factory.mktemp("ipython")))
        shell = InteractiveShell(config=settings)
        shell.run_line_magic("load_ext", "pubsub_emulator.explorer")
        yield shell


@pytest.fixture(scope="module")
def stepped() -> tuple[Network, list[Step]]:
    network = Network.of(publishers=[1000], subscribers={2000: {1000: [KEY]}})
    network.publish(1000, KEY, HOSTILE)
    return network, network.step(4)


def shown(shell: InteractiveShell, thing: object) -> str:
    """The HTML that a notebook gets, which has to be well-formed."""
    formats, _ = shell.display_formatter.format(thing)
    parser = Balanced()
    parser.feed(formats["text/html"])
    parser.close()
    assert parser.open == []
    assert "\n" not in formats["text/plain"]
    assert len(formats["text/plain"]) < 200
    return str(formats["text/html"])


def valid(steps: list[Step]) -> BlockRecord:
    return next(
        record
        for step in steps
        for record in step.records
        if record.outcome and record.outcome.deliveries
    )


def test_every_result_of_a_step_has_a_card_that_names_it(
    shell: InteractiveShell, stepped: tuple[Network, list[Step]]
) -> None:
    network, steps = stepped
    record = valid(steps)
    outcome, state = record.outcome, network.relay.state
    assert outcome is not None
    used = f"{outcome.ledger.used:,} of {outcome.ledger.budget:,} bytes used"
    cards: tuple[tuple[object, tuple[str, ...]], ...] = (
        (network, ("Network at relay block 4", ">2000<", ">1000<")),
        (steps[1], ("DataPublished",)),
        (steps[2], ("Relay block 3", "Deliveries: 1")),
        (steps[2].block, ("Block 3",)),
        (steps[2].block.header, ("state root",)),
        (record, (used, '<svg class="trie"', "&lt;script&gt;alert(1)")),
        (record.candidate, ("proof nodes",)),
        (outcome, (used,)),
        (outcome.ledger, ("top paths",)),
        (outcome.deliveries[0], ("never expires",)),
        (outcome.events[0], ("DataProcessed",)),
        (outcome.events[0].event, ("DataProcessed",)),
        (state, ("child trie",)),
        (state.children[derive_child_key(ParaId(1000))], ("trie of 1 key<",)),
    )
    for thing, said in cards:
        html = shown(shell, thing)
        assert "pubsub-card" in html, type(thing)
        assert all(words in html for words in said), type(thing)
    for things in (
        steps,
        steps[2].records,
        steps[2].deliveries(2000),
        steps[1].events,
        steps[1].block.events,
    ):
        formats, _ = shell.display_formatter.format(things)
        assert "pubsub-card" in formats["text/html"]


def test_a_difference_of_states_is_shown_in_lines(
    shell: InteractiveShell, stepped: tuple[Network, list[Step]]
) -> None:
    states = [
        record.outcome.state for step in stepped[1] for record in step.records if record.outcome
    ]
    difference = diff_states(states[0], states[-1])
    assert difference is not None
    formats, _ = shell.display_formatter.format(difference)
    assert "storage key 0x" in formats["text/html"]
    assert formats["text/plain"] == "\n".join(difference.lines())


def test_a_proof_can_be_drawn_alone_and_a_large_trie_in_part(shell: InteractiveShell) -> None:
    trie = Trie.from_entries([(bytes((number,)) * 32, b"v" * 40) for number in range(20)])
    nodes: dict[object, bytes] = {}
    trie.prove([b"\x03" * 32], nodes)  # type: ignore[arg-type]  # hashes are bytes
    html = shown(shell, picture_of_proof(trie.root(), nodes.values(), [b"\x03" * 32]))
    assert html.count('class="p" data-n') == len(nodes)
    large = Trie.from_entries([(number.to_bytes(4), b"v") for number in range(5000)])
    assert "trie of 5,000 keys, the first 256 drawn" in shown(shell, large)


def test_unloaded_objects_show_themselves_as_python_does(shell: InteractiveShell) -> None:
    shell.run_line_magic("unload_ext", "pubsub_emulator.explorer")
    formats, _ = shell.display_formatter.format(Trie())
    assert "text/html" not in formats
    assert formats["text/plain"].startswith("<pubsub_emulator.trie.mutable.Trie")
    assert all(
        shown not in shell.display_formatter.formatters["text/html"].type_printers
        for shown in CARDS
    )
    shell.run_line_magic("load_ext", "pubsub_emulator.explorer")
    assert "text/html" in shell.display_formatter.format(Trie())[0]


def test_lists_of_other_things_are_shown_as_always(shell: InteractiveShell) -> None:
    for things in ([], (), [1, 2], ["a"], [KEY, None]):
        formats, _ = shell.display_formatter.format(things)
        assert list(formats) == ["text/plain"]


def test_the_example_notebook_runs_and_shows_a_card_in_every_cell(shell: InteractiveShell) -> None:
    notebook = json.loads((ROOT / "examples" / "network.ipynb").read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(cells) >= 8
    for cell in cells:
        done = shell.run_cell(cell, store_history=False)
        assert done.success, cell
        formats, _ = shell.display_formatter.format(done.result)
        assert "pubsub-card" in formats["text/html"], cell
