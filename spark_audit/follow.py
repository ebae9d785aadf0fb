"""A growing history audited as segments land: each turn judges what is new and gives what a whole run gives (AU-10)."""

from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

from spark_audit.audit import AuditResult, audit
from spark_audit.commit import COMMITS


def follow(
    history: Path, out: Path, stop: Event, master: str | None = None, engine: str = "spark", **options: Any
) -> Iterator[AuditResult]:
    """The result of an audit of what is there now, and another one whenever more was committed, until `stop` is set.

    `options` are those of `audit`. A manifest appears last, so whatever it names is there. The engine starts for the
    turns that have something to judge; a Spark session that is running is used by all of them. Raises `AuditFailed`.
    """
    seen: tuple[str, ...] | None = None
    wait = 0.05
    while not stop.is_set():
        found = _manifests(history)
        if found and found != seen:
            yield audit(history, out, master, engine, **options)
            seen, wait = found, 0.05
        else:
            stop.wait(wait)
            wait = min(wait * 2, 2.0)


def _manifests(history: Path) -> tuple[str, ...]:
    return tuple(sorted(path.name for path in (history / COMMITS).glob("[!.]*.json")))
