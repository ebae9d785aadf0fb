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

    `options` are the remaining arguments of `audit`. The first turn that has work starts the
    engine, and all later turns use it. After an interruption, a new call continues where the last
    one ended, because the state is in `out`. Raises `AuditFailed`, `StorageError`.
    """
    store = open_store(history)
    audited: tuple[str, ...] | None = None
    wait = _FIRST_WAIT
    # The engine, once a turn has started it. It is in a list so that `open_once` can set it.
    started: list[Mapper] = []

    def open_once(name: str, master: str | None) -> Mapper:
        """Return the engine that runs already, or start the one that the first turn has chosen."""
        if not started:
            started.append(open_mapper(name, master))
        return _SharedEngine(started[0])

    try:
        while not stop.is_set():
            # A name that begins with a dot is a manifest that is still being written.
            manifests = tuple(
                name
                for name in store.names(COMMITS)
                if name.endswith(".json") and not name.startswith(".")
            )
            if manifests and manifests != audited:
                yield audit(store, out, master, engine=engine, opener=open_once, **options)
                audited = manifests
                wait = _FIRST_WAIT
            else:
                stop.wait(wait)
                wait = min(wait * 2, _LONGEST_WAIT)
    finally:
        for mapper in started:
            mapper.close()


class _SharedEngine:
    """An engine that the audits of all turns share.

    `audit` closes its engine when it ends. Here `close` does nothing, so that the engine runs
    until `follow` closes the real one.
    """

    def __init__(self, real: Mapper) -> None:
        self.real = real
        self.name = real.name
        self.map = real.map

    @property
    def cores(self) -> int:
        return self.real.cores

    def close(self) -> None:
        """Keep the engine open for the next turn."""
