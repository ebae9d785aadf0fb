"""A publisher's log in an archive canister, handed over in pages, and as an ICRC-3 log: IC-48,
RP-7c.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.icrc72.canister_apps import NAME, Asker, Lab, Source, keeping

from interchain_events.events import MemoryStore, open_store
from interchain_events.events.log.store import Store
from interchain_events.icrc72 import REPLAY, RoleCanister, Schedule, plain
from interchain_events.icrc72.archive import BLOCK_TYPE, Archive, whole_log
from interchain_events.icrc72.ic.candid.decode import Decoder
from interchain_events.icrc72.ic.candid.did import parse
from interchain_events.icrc72.ic.candid.encode import Encoder
from interchain_events.icrc72.ic.principal import ANONYMOUS, Principal
from interchain_events.icrc72.settings import DEFAULTS
from interchain_events.icrc72.values import (
    Value,
    blob,
    class_,
    first,
    icrc3_value,
    map_,
    nat,
    of,
    value_hash,
)

Reader = keeping(lambda note: plain(note.data)["n"], Asker)


def archived(
    store: Store,
    events: int,
    schedule: Schedule | None = None,
    *,
    code: type[Archive] = Archive,
    keep: int = 2,
) -> tuple[Lab, Principal, Archive, Principal]:
    """A publisher whose events are all in the archive but the last `keep`, three a round."""
    lab = Lab(settings=replace(DEFAULTS, replay_events=7, batch_notifications=2), schedule=schedule)
    archive = code(store)
    where = lab.network.create(0, RoleCanister([archive]))
    app = Source(
        lab.orchestrator,
        lab.settings,
        publications={NAME: {REPLAY: True}},
        archive=where,
        keep=keep,
    )
    source = archive.writer = lab.network.create(0, app)
    lab.step(60)
    for n in range(1, events + 1, 3):
        lab.call(source, NAME, b"%d %d %d" % (n, n + 1, n + 2))
        lab.step(2)
    lab.step(500)
    return lab, source, archive, where


def test_rp_7c_a_replay_is_made_of_pages_of_the_archive() -> None:
    lab, source, archive, _ = archived(MemoryStore("kept"), 30, Schedule(b"pages", 2, 10))
    log = lab.app(source).publisher.state.log
    assert [row.archived for row in log] == [True] * 27 + [False] * 3
    assert archive.store.head().seq == 27
    assert [
        plain(event.data)["n"] for event in whole_log(lab.network, lab.app(source).publisher)
    ] == list(range(1, 31))
    reader = lab.install(Reader, 1, subscriptions={NAME: {}})
    lab.step(80)
    for _ in range(3):  # the request may be refused
        lab.call(reader, "ask", b"2 30")
        lab.step(300)
    assert lab.app(reader).data == list(range(2, 30))
    assert {each.state for each in lab.system.registry.state.replays.values()} == {"completed"}


def test_rp_7c_an_archive_that_alters_or_lacks_an_event_ends_the_replay() -> None:
    class Forgetful(Archive):
        def _page(self, caller: Principal, time: int, asked: Any) -> Any:
            return tuple(each for each in super()._page(caller, time, asked) if each.eventId != 9)

    lab, _, _, _ = archived(MemoryStore("kept"), 18, code=Forgetful)
    reader = lab.install(Reader, 1, subscriptions={NAME: {}})
    lab.step(80)
    lab.call(reader, "ask", b"2 15")
    lab.step(200)
    (replay,) = lab.system.registry.state.replays.values()
    assert (replay.state, replay.text) == ("errored", "the archive lacks event 9")
    assert lab.app(reader).data == list(range(2, 9))


def test_ic_48_the_store_has_a_block_a_round_with_the_publishers_hashes(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "log.sqlite"), "kept")
    lab, source, archive, _ = archived(store, 9)
    state = lab.app(source).publisher.state
    assert [store.hash_at(number) for number in (1, 2)] == [
        block.hash for block in state.blocks[:2]
    ]
    rows = store.read(0, 10).rows
    assert [(row.anchor, row.index) for row in rows[:4]] == [(1, 0), (1, 1), (1, 2), (2, 0)]
    assert rows[0].block == state.blocks[0].round
    assert rows[0].fields["hash"] == "0x" + state.log[0].hash.hex()
    again = Archive(store, source)
    assert again.page(NAME, 1, 5, 10) == archive.page(NAME, 1, 5, 10)
    assert len(again.page(NAME, 1, 5, 10)) == 4
    store.close()


def test_only_the_publisher_appends_and_an_upgrade_keeps_partial_blocks() -> None:
    lab, source, archive, where = archived(MemoryStore("kept"), 3)
    probe = lab.probe()
    part = (1, 1, bytes(32), bytes(32), 0, 1, ())
    assert lab.answer(probe, where, "archive_append", part).code == 5
    lab.call(source, NAME, b"4 5 6")
    for _ in range(60):
        lab.step()
        if archive.saved():
            break
    assert len(archive.saved()) == 2
    lab.network.stop(where)
    lab.step(20)
    fresh = Archive(archive.store, source)
    assert lab.network.upgrade(where, RoleCanister([fresh]))
    lab.network.start(where)
    lab.call(source, NAME, b"7 8 9")
    lab.step(400)
    assert fresh.store.head().anchor == 2
    assert [event.eventId for event in fresh.page(NAME, 0, 99, 99)] == [1, 2, 3, 4, 5, 6]


ICRC3 = """
type Value = variant {
  Blob : blob; Text : text; Nat : nat; Int : int;
  Array : vec Value; Map : vec record { text; Value };
};
type GetBlocksArgs = vec record { start : nat; length : nat };
type GetBlocksResult = record {
  log_length : nat; blocks : vec record { id : nat; block : Value };
  archived_blocks : vec record {
    args : GetBlocksArgs; callback : func (GetBlocksArgs) -> (GetBlocksResult) query
  };
};
service : { icrc3_get_blocks : (GetBlocksArgs) -> (GetBlocksResult) query };
"""


def test_s001_003_the_archive_is_an_icrc_3_log_whose_blocks_are_chained() -> None:
    lab, source, _, where = archived(MemoryStore("kept"), 6, keep=0)
    method = parse(ICRC3).methods["icrc3_get_blocks"]
    found: list[Value] = []
    for start, length in ((0, 3), (3, 100)):
        arg = Encoder(method.arguments).encode(((start, length),))
        answer = lab.network.query(ANONYMOUS, where, "icrc3_get_blocks", arg)
        ((log_length, blocks, elsewhere),) = Decoder(method.results).decode(answer.data)  # type: ignore[misc]
        assert (log_length, elsewhere) == (6, ())
        assert [number for number, _ in blocks] == list(range(start, min(start + length, 6)))
        found += [block for _, block in blocks]
    parent: bytes | None = None
    for number, block in enumerate(found, 1):
        parts = dict(block.value)  # type: ignore[arg-type]
        assert parts["btype"] == ("Text", BLOCK_TYPE)
        assert parts.get("phash") == (None if parent is None else ("Blob", parent))
        assert first(parts["tx"].value, "data") == map_({"n": nat(number)})
        assert first(parts["tx"].value, "source") == blob(source)
        parent = value_hash(block)
    assert lab.ask("icrc3_supported_block_types", to=where)[0][0] == BLOCK_TYPE


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(
            of(True),
            id="bool",
        ),
        pytest.param(
            of(1.5),
            id="float",
        ),
        pytest.param(
            of(None),
            id="null",
        ),
        pytest.param(
            of({"a": [True, None, b"x", -3]}),
            id="map",
        ),
        pytest.param(
            class_(("a", of(True))),
            id="class",
        ),
        pytest.param(
            of(Principal(b"x")),
            id="principal",
        ),
    ],
)
def test_a_value_has_the_hash_of_its_icrc_3_form(value: Value) -> None:
    made = icrc3_value(value)
    assert value_hash(made) == value_hash(value)
    encoder = Encoder((parse(ICRC3).types["Value"],))
    assert Decoder((parse(ICRC3).types["Value"],)).decode(encoder.encode(made)) == (made,)
