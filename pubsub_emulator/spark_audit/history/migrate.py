"""Migration of a history from an older format to the present one, in place.

In format 1, manifests do not name the previous manifest. In format 2, each chain has a file of its
own. Both have unsigned integers of 64 bits. Old segments are read, checked and written again beside
the old files. The old files are removed only when the network is complete in the new format, so
that an interrupted migration can be continued.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain as chained
from typing import NamedTuple

from pubsub_emulator.spark_audit.history import manifest
from pubsub_emulator.spark_audit.history.address import Address
from pubsub_emulator.spark_audit.history.commit import HistoryPart, write_files, write_manifest
from pubsub_emulator.spark_audit.history.reader import Fault, read_file
from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.history.storage import Store, open_store

Advance = Callable[[int, int], None]
"""Called with the number of segments that are written, and of all that must be written."""


class FoundManifest(NamedTuple):
    """A manifest of the history that is migrated."""

    name: str
    """Its file name."""
    commit: manifest.Commit
    """Its content."""
    version: int
    """Its format."""


@dataclass(frozen=True, slots=True)
class Migrated:
    """The result of a migration."""

    manifests: int
    """Segments that were rewritten."""
    segments: int
    """Segments of the history."""
    head: str
    """The head of the migrated history."""


def migrate(address: Address | Store, advance: Advance = lambda _done, _total: None) -> Migrated:
    """Convert a history to the present format, in place.

    `advance` is called before each segment that is rewritten. Raises `CommitError` if the history
    is damaged or incomplete, and `OSError`.
    """
    store = open_store(address)
    networks: dict[str, list[FoundManifest]] = {}
    names = [name for name in store.names(manifest.COMMITS) if name.endswith(".json")]
    if not names:
        raise manifest.CommitError(f"{store}: there is no history: it has no manifests")
    for name in names:
        try:
            commit, version = manifest.read_any_manifest(store, name)
        except manifest.CommitError as error:
            raise manifest.CommitError(f"{store}/{manifest.COMMITS}/{name}: {error}") from None
        networks.setdefault(commit.network, []).append(FoundManifest(name, commit, version))
    migrated = {network: _whole_chain(manifests) for network, manifests in networks.items()}
    remaining = {
        name: _in_order(store, name, manifests)
        for name, manifests in networks.items()
        if not migrated[name]
    }
    total = sum(map(len, remaining.values()))
    done = 0
    for network, commits in remaining.items():
        previous: manifest.Commit | None = None
        for commit in commits:
            advance(done, total)
            previous = _write(store, commit, previous)
            migrated[network].append(previous)
            done += 1
    for network, manifests in networks.items():
        _remove_others(store, migrated[network], manifests)
    last = {network: commits[-1].digest for network, commits in migrated.items()}
    return Migrated(total, sum(map(len, migrated.values())), manifest.head_of(last))


def _whole_chain(manifests: Sequence[FoundManifest]) -> list[manifest.Commit]:
    """Return a network's manifests in the present format, in order of segments.

    Returns an empty list unless every segment has one. Then the network must be migrated.
    """
    followers = {
        entry.commit.previous: entry.commit
        for entry in manifests
        if entry.version == manifest.FORMAT
    }
    commits: list[manifest.Commit] = []
    commit = followers.get(None)
    while commit is not None and commit.segment == len(commits):
        commits.append(commit)
        commit = followers.get(commit.digest)
    last_segment = max(entry.commit.segment for entry in manifests)
    return commits if len(commits) == last_segment + 1 else []


def _in_order(
    store: Store, network: str, manifests: Sequence[FoundManifest]
) -> list[manifest.Commit]:
    """Return the segments that must be rewritten, in order.

    After an interrupted migration, a segment may exist in two formats. The older one is used.
    Raises `CommitError` if a segment is missing or ambiguous.
    """
    segments: dict[int, list[FoundManifest]] = {}
    for entry in manifests:
        segments.setdefault(entry.commit.segment, []).append(entry)
    ordered: list[FoundManifest] = []
    for segment in range(max(segments) + 1):
        if segment not in segments:
            raise manifest.CommitError(f"{store}: segment {segment} of {network} is missing")
        oldest = min(entry.version for entry in segments[segment])
        candidates = [entry for entry in segments[segment] if entry.version == oldest]
        if len(candidates) > 1 and oldest != manifest.FORMAT:
            raise manifest.CommitError(
                f"{store}: there are two manifests for segment {segment} of {network}"
            )
        previous_digest = ordered[-1].commit.digest if ordered else None
        # Interrupted migrations can leave two manifests in the present format.
        following = (entry for entry in candidates if entry.commit.previous == previous_digest)
        ordered.append(next(following, candidates[0]))
    commits = [entry.commit for entry in ordered]
    # Manifests of format 1 do not name the ones before them, so their order cannot be checked.
    if all(entry.version != manifest.UNCHAINED for entry in ordered):
        for commit, reason in manifest.unlinked(commits):
            raise manifest.CommitError(f"{store}: {commit.name}: {reason}")
    return commits


def _write(
    store: Store, commit: manifest.Commit, preceding: manifest.Commit | None
) -> manifest.Commit:
    """Write a segment in the present format.

    `preceding` is the commit of the previous segment. Raises `CommitError` if a file cannot be
    read, and `OSError`.
    """
    name = f"{commit.segment:08d}"
    parts = [
        HistoryPart(
            manifest.HISTORY_TABLES[entry.table], _rows(store, entry), name, chain=entry.chain
        )
        for entry in commit.files
    ]
    files = write_files(store, commit.network, commit.segment, parts=parts, created=[])
    previous = None if preceding is None else preceding.digest
    written, _ = write_manifest(
        store,
        commit.network,
        commit.segment,
        entries=files,
        next_positions=commit.next_positions,
        previous=previous,
    )
    return written


def _rows(store: Store, entry: manifest.FileEntry) -> list[Row]:
    """Return the rows of a file. Raises `CommitError` if some cannot be read."""
    rows: list[Row] = []
    for group in read_file(store, entry):
        if isinstance(group, Fault):
            raise manifest.CommitError(f"{store}/{group.path}: {group.error}; it was not migrated")
        rows += group.to_pylist()
    return rows


def _remove_others(
    store: Store, commits: Sequence[manifest.Commit], manifests: Iterable[FoundManifest]
) -> None:
    """Remove the manifests that are not in `commits`, each after the files that only it names.

    In this order, an interruption cannot leave a file that no manifest names. Manifests of the
    newest format are removed first.
    """
    names = {commit.name for commit in commits}
    entries = chained.from_iterable(commit.files for commit in commits)
    paths = {entry.path for entry in entries}
    for name, commit, _ in sorted(manifests, key=lambda entry: -entry.version):
        if name not in names:
            for path in {entry.path for entry in commit.files} - paths:
                store.remove(path)
            store.remove(f"{manifest.COMMITS}/{name}")
