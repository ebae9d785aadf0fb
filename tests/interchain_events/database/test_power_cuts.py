"""A power cut at any write of SQLite: what was acknowledged is there afterwards, and nothing that
was not begun.
"""

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from support.events.blocks import counted, make_block
from support.plumbing.power import SqliteDisk, laid, sqlite_on

from interchain_events.distributor.once import open_store as open_once
from interchain_events.distributor.once.transaction import Transaction
from interchain_events.events.log.sql_store import open_store as open_log

STOPS = 1000
"""Images that each test opens, at least."""


def _log(place: str, done: Callable[[object], None]) -> None:
    store = open_log(place, "net")
    done(store.head())
    for number in range(1, 30):
        store.append([counted(number, 3)])
        done(store.head())
        if number % 5 == 0:
            store.rewind(number - 2)
            done(store.head())
            store.append(
                [
                    make_block(
                        number - 1,
                        [("Other.Thing", {})],
                        branch=1,
                        parent=counted(number - 2, 0).hash,
                    )
                ]
            )
            done(store.head())
            store.rewind(number - 2)
            done(store.head())
            store.append([counted(number - 1, 2), counted(number, 2)])
            done(store.head())
    store.close()


def _log_of(place: str) -> object:
    store = open_log(place, "net")
    head = store.head()
    rows = store.read(0, 1_000).rows
    store.close()
    assert [row.seq for row in rows] == list(range(1, head.seq + 1))
    return head


def _once(place: str, done: Callable[[object], None]) -> None:
    store = open_once(f"sqlite:{place}")
    done(0)

    def step(tx: Transaction) -> int:
        count = int(tx.get("count", "n") or "0") + 1
        tx.put("count", "n", str(count))
        tx.put("rows", str(count), "x" * 700, due=count)
        tx.add("seen", str(count))
        if count > 3:
            tx.delete("rows", str(count - 3))
        return count

    for _ in range(120):
        done(store.transact(step))
    store.close()


def _once_of(place: str) -> object:
    store = open_once(f"sqlite:{place}")
    count = store.transact(lambda tx: int(tx.get("count", "n") or "0"))
    rows = {key for key, _ in store.rows("rows")}
    seen = store.transact(lambda tx: [at for at in range(1, 200) if tx.has("seen", str(at))])
    store.close()
    assert rows == {str(at) for at in range(max(1, count - 2), count + 1)}
    assert seen == list(range(1, count + 1))
    return count


@pytest.mark.parametrize(
    ("play", "read"),
    [
        (_log, _log_of),
        (_once, _once_of),
    ],
    ids=["log", "distributor"],
)
def test_a_power_cut_loses_nothing_that_was_acknowledged(
    tmp_path: Path,
    play: Callable[[str, Callable[[object], None]], None],
    read: Callable[[str], object],
) -> None:
    rng = random.Random(7)
    disk = SqliteDisk()
    states: list[object] = []
    images: dict[tuple[tuple[str, bytes], ...], int] = {}

    def stop() -> None:
        for image in disk.images(rng):
            key = tuple(
                sorted((name, data) for name, data in image.items() if not name.endswith("-shm"))
            )
            images[key] = len(states)

    def done(state: object) -> None:
        states.append(state)
        stop()

    disk.on_change = stop
    (tmp_path / "live").mkdir()
    with sqlite_on(disk):
        play(str(tmp_path / "live" / "a.db"), done)
    kept = {key: known for key, known in images.items() if known}
    assert len(kept) >= STOPS
    for key, known in kept.items():
        folder = laid(dict(key), tmp_path / "after")
        found = read(str(folder / "a.db"))
        assert found in states[known - 1 :], f"{known} were acknowledged"
