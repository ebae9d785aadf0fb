"""The project's executable fixtures.

They are blocks of one scenario, cheats from the corpus that the scenario lacks, and relay states. A
relay state has every storage value, every child trie, and the header that commits to them:

    version      1
    name, about  what the file shows, for people
    relay_state  number, header (SCALE), hash of the header,
                 entries   [key, value] of the top trie, ascending, child roots left out
                 children  storage_key (without `:child_storage:default:`) and entries of each
                           child trie
                 extrinsics the block's body; the first one enters the backed candidates

Another implementation computes the root of `entries` and the child roots, and compares it with the
header's. Every value decodes as the item of its prefix. Bytes are hexadecimal with `0x`.
"""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from pubsub_emulator.collator.cheats import STRATEGIES
from pubsub_emulator.emulator.fixtures import (
    FIXTURE_VERSION,
    Fixture,
    FixtureMaker,
    make_fixture,
    read_fixture,
    schema,
    write_fixture,
)
from pubsub_emulator.emulator.network.records import BlockRecord
from pubsub_emulator.emulator.scenario.file import load_bundled
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.laboratory.campaign import corpus
from pubsub_emulator.laboratory.cases import Case
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.storage_keys import CHILD_STORAGE_PREFIX
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.pallet_subscriber.config import runtime_spec
from pubsub_emulator.runtime.parachain.block import Candidate
from pubsub_emulator.runtime.parachain.validate import judge_block

SCENARIO: Final = "fixtures"
"""The name of the scenario."""
SCHEMA_FILE: Final = "schema.json"
README_FILE: Final = "README.md"

VERSION: Final = 1
"""The version of the format of relay states."""
FOLDER: Final = "relay"
"""The folder of relay states in a set of fixtures."""

KEPT: Final = 4
"""The number of relay states of a scenario, evenly distributed over its length."""

_README: Final = f"""# Vectors: one judged block a file

Version {FIXTURE_VERSION}. Each `*.json` but `{SCHEMA_FILE}` is one parachain block \
with all that is needed to judge it,
and what must come of it; `{SCHEMA_FILE}` is the JSON Schema of these files. \
Bytes are hexadecimal with `0x`, structures
are SCALE, state tries are LayoutV1. \
The project's docs/fixtures.md says field by field how another implementation
replays them, and `pubsub replay` does so with the reference.

| file | what it shows |
|---|---|
"""


def make_vectors(progress: Callable[[int], None] | None = None) -> list[Fixture]:
    """Run the scenario and return one fixture of each kind. They are always the same."""
    maker = FixtureMaker(per_kind=1)
    Simulation(load_bundled(SCENARIO), (maker,)).run(progress)
    cases = {case.strategies[0]: case for _, case in corpus() if case.block is not None}
    lacking = (cases[name] for name in STRATEGIES if name in cases and name not in maker.strategies)
    corpus_fixtures: list[Fixture] = []
    for case in lacking:
        corpus_fixtures += fixtures_of_case(case)
    return sorted([*maker.fixtures, *corpus_fixtures], key=lambda fixture: fixture.name)


def fixtures_of_case(case: Case) -> Iterable[Fixture]:
    """Yield the block of a stored case as a fixture.

    Yield nothing if only a proof was judged, or if decoding the block's bytes gives another block.
    """
    if case.block is None:
        return
    candidate = case.changed_block(case.block, case.shrunk)
    if Candidate.decode(candidate.encode()) != candidate:
        return
    judging = case.judging
    context = judging.context(candidate)
    outcome, refusal = judge_block(judging.parent, candidate, context)
    record = BlockRecord(
        chain=runtime_spec(Storage(judging.parent.state)).para_id,
        segment=0,
        candidate=candidate,
        included_at=context.number,
        slot_now=judging.slot_now,
        relay_storage_root=context.storage_root,
        unpruned=(),
        outcome=outcome,
        refusal=refusal,
        strategy="+".join(case.strategies),
    )
    kind = "accepted" if refusal is None else f"rejected-{refusal.verdict.value}"
    name = f"{kind}-{case.strategies[0]}-corpus".lower()
    about = f"{case.strategies[0]}: {'valid after all' if refusal is None else refusal}"
    yield make_fixture(name, about, judging.parent, record=record)


def write_vectors(fixtures: Iterable[Fixture], folder: Path) -> None:
    """Write fixtures, relay states, schema and README into an existing folder."""
    rows = []
    for fixture in fixtures:
        write_fixture(fixture, folder / f"{fixture.name}.json")
        about = fixture.about.replace("|", "\\|")
        rows.append(
            f"| `{fixture.name}.json` | {about if len(about) < 160 else about[:157] + '…'} |\n"
        )
    write_relay_states(relay_states(SCENARIO), folder)
    (folder / SCHEMA_FILE).write_text(json.dumps(schema(), indent=1) + "\n", encoding="utf-8")
    (folder / README_FILE).write_text(_README + "".join(rows), encoding="utf-8")


def read_vectors(folder: Path) -> list[Fixture]:
    """Return the fixtures in a folder in the order of their names. Raises `FixtureError`."""
    return [
        read_fixture(path) for path in sorted(folder.glob("*.json")) if path.name != SCHEMA_FILE
    ]


def relay_states(scenario: str) -> list[dict[str, object]]:
    """Return the relay states of a bundled scenario at `KEPT` of its blocks."""
    simulation = Simulation(load_bundled(scenario))
    network = simulation.network
    blocks = simulation.scenario.relay_blocks
    wanted = {blocks * part // KEPT for part in range(1, KEPT + 1)}
    states = []
    while network.number < blocks:
        block = simulation.step().block
        if network.number in wanted:
            states.append(relay_state(block.header, network.relay.state, block.extrinsics))
    return states


def relay_state(header: Header, state: State, extrinsics: Iterable[bytes]) -> dict[str, object]:
    """Return a relay state in the form of its file."""
    top = [
        (key, value)
        for key, value in state.top_entries()
        if not key.startswith(CHILD_STORAGE_PREFIX)
    ]
    keys = sorted(state.children)
    children = [
        {"storage_key": hexed(key), "entries": _pairs(state.child_entries(key))} for key in keys
    ]
    return {
        "version": VERSION,
        "name": f"relay-state-{header.number:03}",
        "about": f"relay block {header.number}: {len(top)} entries and {len(children)} child tries",
        "relay_state": {
            "number": header.number,
            "header": hexed(header.encode()),
            "hash": hexed(header.hash()),
            "entries": _pairs(top),
            "children": children,
            "extrinsics": [hexed(extrinsic) for extrinsic in extrinsics],
        },
    }


def write_relay_states(states: Iterable[dict[str, object]], folder: Path) -> None:
    """Write each state into the folder `relay` in `folder`."""
    subfolder = folder / FOLDER
    subfolder.mkdir()
    for state in states:
        (subfolder / f"{state['name']}.json").write_text(
            json.dumps(state, indent=1) + "\n", encoding="utf-8"
        )


def _pairs(entries: Iterable[tuple[bytes, bytes]]) -> list[list[str]]:
    return [[hexed(key), hexed(value)] for key, value in entries]
