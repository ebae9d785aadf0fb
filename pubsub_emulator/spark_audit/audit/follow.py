"""The audit of a growing history: each turn judges the segments that are new.

After each turn, the results are those of an audit of the whole history (AU-10).
"""

from collections.abc import Generator
from threading import Event
from typing import Any

from pubsub_emulator.spark_audit.audit.run import AuditResult, audit
from pubsub_emulator.spark_audit.choice import open_mapper
from pubsub_emulator.spark_audit.engine.engine import Mapper
from pubsub_emulator.spark_audit.history.address import Address
from pubsub_emulator.spark_audit.history.manifest import COMMITS
from pubsub_emulator.spark_audit.history.storage import open_store

_FIRST_WAIT = 0.05
"""Seconds to wait after a turn before the history is listed again."""
_LONGEST_WAIT = 2.0
"""Upper limit of the wait, which doubles as long as nothing new is committed."""


def follow(
    history: Address,
    out: Address,
    stop: Event,
    master: str | None = None,
    engine: str = "auto",
    **options: Any,
) -> Generator[AuditResult, None, None]:
    """Yield the result of an audit now, and again after every new commit, until `stop` is set.

    `options` are the remaining arguments of `audit`. The engine is started by the first turn that
    has work and serves all later turns. After an interruption, a new call continues where the last
    one ended, because the state is in `out`. Raises `AuditFailed`, `StorageError`.
    """
    store = open_store(history)
    seen: tuple[str, ...] | None = None
    wait = _FIRST_WAIT
    # A list, so that `open_once` can fill it. It holds the engine once there is one.
    kept: list[Mapper] = []

    def open_once(name: str, master: str | None) -> Mapper:
        if not kept:
            kept.append(open_mapper(name, master))
        return _Kept(kept[0])

    try:
        while not stop.is_set():
            # A name that begins with a dot is a manifest that is still being written.
            found = tuple(
                name
                for name in store.names(COMMITS)
                if name.endswith(".json") and not name.startswith(".")
            )
            if found and found != seen:
                yield audit(store, out, master, engine, opener=open_once, **options)
                seen, wait = found, _FIRST_WAIT
            else:
                stop.wait(wait)
                wait = min(wait * 2, _LONGEST_WAIT)
    finally:
        for mapper in kept:
            mapper.close()


class _Kept:
    """An engine that the audits of all turns share: `close` does not stop it.

    `audit` closes its engine at the end. `follow` closes the real engine.
    """

    def __init__(self, real: Mapper) -> None:
        self.real = real
        self.name, self.map = real.name, real.map

    @property
    def cores(self) -> int:
        return self.real.cores

    def close(self) -> None:
        """Keep the engine open for the next turn."""
