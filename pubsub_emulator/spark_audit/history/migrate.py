"""A history of an older format brought up to the present one, in its place.

Manifests of format 1 do not name each other. Every file that they name is checked, then manifests that do are written
beside them, and then the old ones are removed: a migration that was ended early is taken up by the next one, and no
file of data is touched.
"""

from collections.abc import Callable
from dataclasses import dataclass

from pubsub_emulator.spark_audit.history.address import Address
from pubsub_emulator.spark_audit.history.commit import write_manifest
from pubsub_emulator.spark_audit.history.manifest import (
    COMMITS,
    FORMAT,
    UNCHAINED,
    Commit,
    CommitError,
    FileEntry,
    format_of,
    head_of,
    read_manifest,
    read_unchained,
    unlinked,
)
from pubsub_emulator.spark_audit.history.reader import Fault, read_file
from pubsub_emulator.spark_audit.history.storage import Store, open_store

Advance = Callable[[int, int], None]
"""Told how many files are checked, of how many."""


@dataclass(frozen=True, slots=True)
class Migrated:
    """The result of a migration: rewritten manifests, segments in all, and the new head."""

    manifests: int
    segments: int
    head: str


def migrate(address: Address | Store, advance: Advance = lambda _done, _total: None) -> Migrated:
    """Bring a history up to the present format. Raises `CommitError` for one that is damaged, `OSError`."""
    store = open_store(address)
    old: dict[str, dict[int, tuple[str, Commit]]] = {}
    new: dict[str, dict[int, Commit]] = {}
    names = [name for name in store.names(COMMITS) if name.endswith(".json")]
    if not names:
        raise CommitError(f"{store}: there is no history: it has no manifests")
    for name in names:
        found = format_of(store, name)
        try:
            commit = read_unchained(store, name) if found == UNCHAINED else read_manifest(store, name)
        except CommitError as error:
            raise CommitError(f"{store}/{COMMITS}/{name}: {error}") from None
        if found == FORMAT:
            new.setdefault(commit.network, {})[commit.segment] = commit
        elif old.setdefault(commit.network, {}).setdefault(commit.segment, (name, commit))[0] != name:
            raise CommitError(f"{store}: there are two manifests for segment {commit.segment} of {commit.network}")
    for network, segments in old.items():
        _check_order(store, network, segments, new.get(network, {}))
    entries = [entry for segments in old.values() for _, commit in segments.values() for entry in commit.files]
    for at, entry in enumerate(entries):
        advance(at, len(entries))
        _check_file(store, entry)
    written = 0
    for network, segments in old.items():
        previous: str | None = None
        there = new.setdefault(network, {})
        for segment in () if segments.keys() <= there.keys() else sorted(segments):
            commit = segments[segment][1]
            made = write_manifest(store, network, segment, commit.files, commit.next_positions, previous)
            there[segment] = made
            previous = made.digest
            written += 1
        for name, _ in segments.values():
            store.remove(f"{COMMITS}/{name}")
    last = {network: segments[max(segments)].digest for network, segments in new.items()}
    return Migrated(written, sum(map(len, new.values())), head_of(last))


def _check_order(store: Store, network: str, old: dict[int, tuple[str, Commit]], new: dict[int, Commit]) -> None:
    """Raises `CommitError` unless the segments follow each other."""
    expected = range(max(old) + 1)
    removing = old.keys() <= new.keys()  # all are written again, and some of the old ones were removed
    if not removing and sorted(old) != list(expected):
        missing = next(segment for segment in expected if segment not in old)
        raise CommitError(f"{store}: segment {missing} of {network} is missing")
    for segment, made in new.items():
        # Left by a migration that was ended early: the same files under the same segment, or another history.
        if (segment not in old and not removing) or (segment in old and made.files != old[segment][1].files):
            raise CommitError(f"{store}: segment {segment} of {network} has manifests of two formats that differ")
    problems = unlinked([new[segment] for segment in sorted(new)])
    if problems:
        raise CommitError(f"{store}: {problems[0][0].name}: {problems[0][1]}")


def _check_file(store: Store, entry: FileEntry) -> None:
    """Raises `CommitError` unless a file is what its manifest says."""
    for unit in read_file(store, entry):
        if isinstance(unit, Fault):
            raise CommitError(f"{store}/{unit.path}: {unit.error}; nothing was migrated")
