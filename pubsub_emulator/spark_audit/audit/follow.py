"""A growing history audited as segments land: each turn judges what is new and gives what a whole run gives (AU-10)."""

from collections.abc import Generator, Sequence
from threading import Event
from typing import Any

from pubsub_emulator.spark_audit.audit.run import AuditResult, audit
from pubsub_emulator.spark_audit.choice import open_mapper
from pubsub_emulator.spark_audit.engine.engine import Answer, Mapper, Report, Unit
from pubsub_emulator.spark_audit.history.address import Address
from pubsub_emulator.spark_audit.history.manifest import COMMITS
from pubsub_emulator.spark_audit.history.storage import open_store

_FIRST_WAIT = 0.05
_LONGEST_WAIT = 2.0


def follow(
    history: Address, out: Address, stop: Event, master: str | None = None, engine: str = "auto", **options: Any
) -> Generator[AuditResult, None, None]:
    """The result of an audit of what is there now, and another one whenever more was committed, until `stop` is set.

    `options` are those of `audit`. A manifest appears last, so whatever it names is there. The engine starts with the
    first turn that has something to judge and serves all later ones. A turn that is interrupted leaves what it judged:
    whoever follows again goes on from there. Raises `AuditFailed`, `StorageError`.
    """
    store = open_store(history)
    seen: tuple[str, ...] | None = None
    wait = _FIRST_WAIT
    kept = _Kept()
    try:
        while not stop.is_set():
            found = tuple(name for name in store.names(COMMITS) if name.endswith(".json") and not name.startswith("."))
            if found and found != seen:
                yield audit(store, out, master, engine, opener=kept.open, **options)
                seen, wait = found, _FIRST_WAIT
            else:
                stop.wait(wait)
                wait = min(wait * 2, _LONGEST_WAIT)
    finally:
        kept.end()


class _Kept:
    """An engine that outlives the audits that use it."""

    name = ""

    def __init__(self) -> None:
        self.real: Mapper | None = None

    @property
    def cores(self) -> int:
        """Those of the engine that is open."""
        return 1 if self.real is None else self.real.cores

    def open(self, name: str, master: str | None) -> Mapper:
        """Start the engine, or return the one that is open."""
        if self.real is None:
            self.real = open_mapper(name, master)
            self.name = name
        return self

    def map(
        self, unit: Unit, tasks: Sequence[str], out: str, report: Report, weights: Sequence[int] | None = None
    ) -> list[Answer]:
        """Run the tasks on the engine that is open. Raises `RuntimeError` if none is."""
        if self.real is None:
            raise RuntimeError("an engine is opened before it is used")
        return self.real.map(unit, tasks, out, report, weights)

    def close(self) -> None:
        """Keep the engine open for the next turn."""

    def end(self) -> None:
        """Stop the engine."""
        if self.real is not None:
            self.real.close()
