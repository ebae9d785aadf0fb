"""Very many stories in one process, which go on where they were ended.

    PYTHONPATH=tests python -m support.plumbing.story_campaign prism --count 100000 \\
        --kept prism.jsonl

`events` are stories of a log, a hub and its clients, `prism` those of a PRISM node, `db-sync` the
same over a chain in PostgreSQL, `evm` those of an adapter on ganache. Story 7 is always the same,
except with ganache. Each line of the kept file says how many stories in a row were played and which
had a surprise; the next run begins after the last. Exit code 1 when there was a surprise.
"""

import argparse
import gc
import json
import logging
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from support.distributor.evm_stories import evm_player
from support.events.stories import Story
from support.plumbing.postgres import mortal_server
from support.prism.db_sync_stories import DbSyncStory, ManyChains
from support.prism.prism_stories import PrismStory

from interchain_events.database.sqlite import SqliteDatabase
from interchain_events.prism.status_deliveries import StatusDeliveries
from interchain_events.prism.tables.schema import prepare

_LINE = 100
"""Stories of one line."""
_MEMORY = Path("/dev/shm")  # noqa: S108  # files in memory, in a folder of our own


Player = AbstractContextManager[Callable[[int], None]]
Make = Callable[[int, SqliteDatabase], PrismStory]


def prism_player(recorder: Callable[[], StatusDeliveries] | None = None) -> Player:
    """Return a function that plays the PRISM story of a seed."""
    return _player(lambda seed, database: PrismStory(seed, database, recorder))


@contextmanager
def db_sync_player(url: str | None = None) -> Iterator[Callable[[int], None]]:
    """Yield a function that plays the PRISM story of a seed over a db-sync.

    `url` is the address of an empty database. By default, a server is started.
    """
    with ExitStack() as stack:
        server = stack.enter_context(mortal_server()) if url is None else None
        cardano = ManyChains(server.database() if server else str(url))
        stack.callback(cardano.close)
        yield stack.enter_context(
            _player(lambda seed, database: DbSyncStory(seed, database, cardano))
        )


@contextmanager
def _player(make: Make) -> Iterator[Callable[[int], None]]:
    """Return a function that plays a story, on copies of empty tables in memory if possible."""
    folder = Path(tempfile.mkdtemp(prefix="stories-", dir=_MEMORY if _MEMORY.is_dir() else None))
    empty = SqliteDatabase(str(folder / "empty.db"))
    prepare(empty)
    empty.close()

    def play(seed: int) -> None:
        place = folder / "story"
        place.mkdir()
        shutil.copy(folder / "empty.db", place / "story.db")
        database = SqliteDatabase(str(place / "story.db"))
        try:
            make(seed, database).play()
        finally:
            database.close()
            shutil.rmtree(place)

    try:
        yield play
    finally:
        shutil.rmtree(folder)


PLAYERS: dict[str, Callable[[], Player]] = {
    "events": lambda: nullcontext(lambda seed: Story(seed).run()),
    "prism": prism_player,
    "db-sync": db_sync_player,
    "evm": evm_player,
}


def main() -> int:
    """Play them."""
    parser = argparse.ArgumentParser(prog="support.plumbing.story_campaign", description=__doc__)
    parser.add_argument("of", choices=tuple(PLAYERS))
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=1_000, help="how many, of all runs together")
    parser.add_argument(
        "--kept", type=Path, help="where the results are, which the next run goes on from"
    )
    given = parser.parse_args()
    logging.disable(logging.WARNING)
    done = _done(given.kept)
    first = max([given.first, *(each["first"] + each["stories"] for each in done)])
    surprises = [name for each in done for name in each["surprises"]]
    started = time.process_time()
    with PLAYERS[given.of]() as play:
        gc.freeze()  # what all stories share is no story's garbage
        for at in range(first, given.first + given.count, _LINE):
            count = min(_LINE, given.first + given.count - at)
            found = [seed for seed in range(at, at + count) if not _is_kept(play, seed)]
            surprises += found
            if given.kept is not None:
                with given.kept.open("a", encoding="utf-8") as file:
                    file.write(
                        json.dumps({"first": at, "stories": count, "surprises": found}) + "\n"
                    )
    total = given.first + given.count - first
    sys.stdout.write(
        f"{total:,} stories, {time.process_time() - started:,.0f} s of CPU; surprises in all:"
        f" {surprises}\n"
    )
    return 1 if surprises else 0


def _is_kept(play: Callable[[int], None], seed: int) -> bool:
    try:
        play(seed)
    except Exception as error:  # noqa: BLE001  # whatever it is, it is a surprise
        sys.stderr.write(f"story {seed}: {error!r}\n")
        return False
    return True


def _done(path: Path | None) -> list[dict[str, Any]]:
    if path is None or not path.exists():
        return []
    return [
        json.loads(line)
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.endswith("}")
    ]


if __name__ == "__main__":
    sys.exit(main())
