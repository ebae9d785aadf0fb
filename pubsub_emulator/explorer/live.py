"""The pages of a running node, which show the live chain, stored blocks or a dry run."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, Final

from pubsub_emulator.emulator.network.records import (
    AuthorityRecord,
    BlockRecord,
    CheckpointRecord,
    RelayRecord,
)
from pubsub_emulator.emulator.scenario.model import Scenario
from pubsub_emulator.explorer.page import page_html, page_index
from pubsub_emulator.explorer.recorder import Recorder
from pubsub_emulator.explorer.svg import legend
from pubsub_emulator.explorer.words import scenario_names
from pubsub_emulator.node.chain.block import RELAY, Moment
from pubsub_emulator.node.rpc.node import RpcNode
from pubsub_emulator.pages.assets import COLOURS, MEDIA_TYPES, asset, names, styles
from pubsub_emulator.pages.document import document
from pubsub_emulator.pages.html import Html, join, tag
from pubsub_emulator.primitives.types import ParaBlockNumber, ParaId, Slot

DRAWN: Final = 200
"""The maximum number of relay blocks on a page. They are the newest ones."""


def difference_page(title: str, answer: Mapping[str, object]) -> str:
    """Return the page of a dry run as a tree of additions, changes and removals.

    `answer` is the answer of `dev_dryRun`. Its `delta` is in jsondiffpatch's format.
    """
    delta = answer["delta"]
    shown_changes = tag("p", "Nothing would change.") if delta is None else _node(delta)
    return document(title, styles("block/difference.css"), shown_changes)


def _named(delta: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Yield the fields of a delta with their names, or the items of an array with their places.

    In jsondiffpatch's format, the place of a removed item begins with `_`.
    """
    is_array = delta.get("_t") == "a"
    for name, change in delta.items():
        if not is_array:
            yield name, change
        elif name != "_t":
            yield f"[{name.removeprefix('_')}]", change


def _node(delta: Any) -> Html:
    """Return a delta as HTML.

    In jsondiffpatch's format, an added value is a list of one element, a removed value a list of
    three, and a changed value a list of the old and the new one.
    """
    if isinstance(delta, Mapping):
        return tag("ul", *(tag("li", name, ": ", _node(inner)) for name, inner in _named(delta)))
    if len(delta) == 1:
        return tag("ins", _code(delta[0]))
    if len(delta) == 3:
        return tag("del", _code(delta[0]))
    return join((tag("del", _code(delta[0])), " → ", tag("ins", _code(delta[1]))))


def _code(value: object) -> Html:
    return tag("code", value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


class LivePage:
    """Makes the pages of one node. It is the `Pages` of the server."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario

    def live(self) -> Mapping[str, tuple[bytes, str]]:
        """Return the files of the live page by path, with their media types."""
        files = {
            f"/page/{name}": (asset(name).encode(), MEDIA_TYPES[PurePosixPath(name).suffix])
            for name in (COLOURS, *names("", "block", "lab", "vendor"))
        }
        page = asset("lab/lab.html").replace("<!--legend-->", legend(), 1)
        return {"/": (page.encode(), "text/html"), **files}

    def explain(
        self, node: RpcNode, before: Moment, moment: Moment, record: BlockRecord
    ) -> dict[str, object]:
        """Return a candidate with all details that the page of a run shows.

        `before` is the moment before the one with the candidate.
        """
        recorder = self._recorder(node, before, record.chain)
        for earlier in moment.records:
            # Earlier candidates of the same chain change the state on which this one was built.
            if earlier.chain == record.chain:
                recorder.candidate(earlier)
                if earlier is record:
                    break
        index = page_index(recorder, "", "")
        nodes = [
            [name.hex(), length, stored.hex()]
            for name, (_, length, stored) in recorder.nodes.items()
        ]
        return {"index": index, "detail": json.loads(recorder.details[-1]), "nodes": nodes}

    difference = staticmethod(difference_page)

    def explore(self, node: RpcNode, moments: Sequence[Moment]) -> str:
        """Return the page of the newest moments, which are in ascending order.

        The first moment is the state before the others and is not drawn.
        """
        drawn = moments[-DRAWN - 1 :]
        recorder = self._recorder(node, drawn[0])
        for moment in drawn[1:]:
            header = moment.relay.header
            slot = max((record.slot_now for record in moment.records), default=Slot(0))
            recorder.relay_block(
                RelayRecord(moment.number, moment.relay.hash, header.state_root, slot=slot)
            )
            for record in moment.records:
                recorder.candidate(record)
        return page_html(recorder, self._scenario.name, self._scenario.description)

    def _recorder(self, node: RpcNode, start: Moment, only: ParaId | None = None) -> Recorder:
        """Return a recorder that knows the state of a moment's chains, or of one of them."""
        names = scenario_names(self._scenario)
        network = node.network
        recorder = Recorder(replace(names, keys={**node.names, **names.keys}), network.relay)
        for chain, block in start.heads.items():
            if chain is RELAY or only not in {None, chain}:
                continue
            keys = tuple(collator.key for collator in network.parachain(chain).collators)
            recorder.authorities(AuthorityRecord(chain, ParaBlockNumber(block.number + 1), keys))
            recorder.checkpoint(CheckpointRecord(chain, 0, block.header, state=block.state))
            if network.parachain(chain).known_subscriptions:
                recorder.chains[chain].subscribes = True
        return recorder
