"""PRISM: operations from the log into the tables, beside checking their signatures alone.

`python -m bench --only prism`.
"""

import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from coincurve import PublicKey

from bench.events import postgres
from bench.measure import Race
from interchain_events.database.opening import open_database
from interchain_events.events.log.memory import MemoryStore
from interchain_events.events.rows import ChainBlock, assemble
from interchain_events.prism.core.identifiers import sha256
from interchain_events.prism.core.messages import (
    AddService,
    Service,
    SignedAtalaOperation,
    Usage,
    decode,
)
from interchain_events.prism.make import (
    Secret,
    Signed,
    atala_object,
    create_did,
    issue_batch,
    update_did,
)
from interchain_events.prism.tables.processor import Processor

WALLETS: Final = 1_000
_EACH: Final = 4
_OBJECT: Final = 20
_BLOCK: Final = 10
_PAIRS: Final = 7


def _wallet(number: int) -> tuple[bytes, bytes, list[Signed]]:
    """Return the two public keys of a wallet, and four operations.

    The first key signs three of them, and the second key the last.
    """
    master, issuing = (
        Secret(sha256(f"{number} {name}".encode())) for name in ("master", "issuing")
    )
    created = create_did({"m": (Usage.MASTER_KEY, master), "i": (Usage.ISSUING_KEY, issuing)})
    steps = [created]
    for name in "ab":
        action = AddService(Service(name, "LinkedDomains", "https://example.com/"))
        steps.append(update_did(created.suffix, steps[-1].hash, [action], "m", master))
    steps.append(issue_batch(created.suffix, created.hash, "i", issuing).signed)
    return master.point, issuing.point, steps


def races() -> Iterator[Race]:
    """Yield races of processing operations against checking their signatures alone.

    They compare times: a ratio of 2 is half as many operations per second as signature checks.
    """
    folder = Path(tempfile.mkdtemp(prefix="bench-prism-"))
    wallets = [_wallet(number) for number in range(WALLETS)]
    checks: list[tuple[bytes, bytes, bytes]] = []
    raw: list[bytes] = []
    for master, issuing, steps in wallets:
        for place, signed in enumerate(steps):
            signature = decode(SignedAtalaOperation, signed.raw).signature
            raw.append(signed.raw)
            checks.append((issuing if place == _EACH - 1 else master, signed.operation, signature))
    objects = [atala_object(raw[start : start + _OBJECT]) for start in range(0, len(raw), _OBJECT)]
    log = MemoryStore("bench")
    for number, start in enumerate(range(0, len(objects), _BLOCK), 1):
        events = [
            ("Prism.ObjectAnchored", {"object": anchored})
            for anchored in objects[start : start + _BLOCK]
        ]
        block = ChainBlock(None, number, sha256(b"%d" % number), number, events)
        log.append([assemble(block, (), parent=sha256(b"%d" % (number - 1)))])

    def process(places: Iterator[str]) -> None:
        database = open_database(next(places))
        count = Processor(database, log, depth=0).run()
        database.close()
        if count != len(raw):
            raise RuntimeError(f"{count} rows of {len(raw)} operations")

    def verify() -> None:
        if not all(
            PublicKey(point).verify(signature, message) for point, message, signature in checks
        ):
            raise RuntimeError("a signature does not hold")

    name = f"prism: process {len(raw):,} operations"
    base = "their signature checks"
    files = (str(folder / f"{number}.db") for number in count())
    yield Race(name, lambda: process(files), base, verify, _PAIRS, target=2.0)
    with postgres() as url:
        if url is not None:
            databases = iter([_new_database(url, number) for number in range(_PAIRS)])
            note = "without the server's time"
            yield Race(
                f"{name}, PostgreSQL", lambda: process(databases), base, verify, _PAIRS, note=note
            )


def _new_database(url: str, number: int) -> str:
    import psycopg  # noqa: PLC0415  # beside the server
    from psycopg.sql import SQL, Identifier  # noqa: PLC0415

    name = f"prism{number}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(SQL("CREATE DATABASE {}").format(Identifier(name)))
    return urlsplit(url)._replace(path=f"/{name}").geturl()
