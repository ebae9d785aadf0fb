"""A growing history audited as segments land: each turn judges what is new and gives what a whole run gives (AU-10)."""

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
_LONGEST_WAIT = 2.0


def follow(
    history: Address, out: Address, stop: Event, master: str | None = None, engine: str = "auto", **options: Any
) -> Generator[AuditResult, None, None]:
    """The result of an audit of what is there, and another one whenever more was committed, until `stop` is set.

    `options` are those of `audit`. The engine starts with the first turn that has work and serves all later ones. Who
    follows again after an interruption goes on from there. Raises `AuditFailed`, `StorageError`.
    """
    store = open_store(history)
    seen: tuple[str, ...] | None = None
    wait = _FIRST_WAIT
    kept: list[Mapper] = []

    def open_once(name: str, master: str | None) -> Mapper:
        if not kept:
            kept.append(open_mapper(name, master))
        return _Kept(kept[0])

    try:
        while not stop.is_set():
            found = tuple(name for name in store.names(COMMITS) if name.endswith(".json") and not name.startswith("."))
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
    """An engine that outlives the audits that use it."""

    def __init__(self, real: Mapper) -> None:
        self.real = real
        self.name, self.map = real.name, real.map

    @property
    def cores(self) -> int:
        return self.real.cores

    def close(self) -> None:
        """Keep the engine open for the next turn."""
