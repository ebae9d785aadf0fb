"""Migration of a history from an older format to the present one, in place.

In format 1, manifests do not name the previous manifest. In format 2, each chain has a file of its
own. Both have unsigned integers of 64 bits. Old segments are read, checked and written again beside
the old files. The old files are removed only when the network is complete in the new format, so
that an interrupted migration can be continued.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain as chained

from pubsub_emulator.spark_audit.history import manifest
from pubsub_emulator.spark_audit.history.address import Address
from pubsub_emulator.spark_audit.history.commit import HistoryPart, write_files, write_manifest
from pubsub_emulator.spark_audit.history.reader import Fault, read_file
from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.history.storage import Store, open_store

Advance = Callable[[int, int], None]
"""Called with the number of segments that are written, and of all that must be written."""

FoundManifest = tuple[str, manifest.Commit, int]
"""A manifest: its name, its content, and its format."""


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
        networks.setdefault(commit.network, []).append((name, commit, version))
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
        commit.previous: commit for _, commit, version in manifests if version == manifest.FORMAT
    }
    commits: list[manifest.Commit] = []
    while (
        commit := followers.get(commits[-1].digest if commits else None)
    ) is not None and commit.segment == len(commits):
        commits.append(commit)
    return commits if len(commits) == 1 + max(commit.segment for _, commit, _ in manifests) else []


def _in_order(
    store: Store, network: str, manifests: Sequence[FoundManifest]
) -> list[manifest.Commit]:
    """Return the segments that must be rewritten, in order.

    After an interrupted migration, a segment may exist in two formats. The older one is used.
    Raises `CommitError` if a segment is missing or ambiguous.
    """
    segments: dict[int, list[FoundManifest]] = {}
    for candidate in manifests:
        segments.setdefault(candidate[1].segment, []).append(candidate)
    ordered: list[FoundManifest] = []
    for segment in range(max(segments) + 1):
        if segment not in segments:
            raise manifest.CommitError(f"{store}: segment {segment} of {network} is missing")
        oldest = min(version for *_, version in segments[segment])
        candidates = [candidate for candidate in segments[segment] if candidate[2] == oldest]
        if len(candidates) > 1 and oldest != manifest.FORMAT:
            raise manifest.CommitError(
                f"{store}: there are two manifests for segment {segment} of {network}"
            )
        previous_digest = ordered[-1][1].digest if ordered else None
        # Interrupted migrations can leave two manifests in the present format.
        ordered.append(
            next(
                (candidate for candidate in candidates if candidate[1].previous == previous_digest),
                candidates[0],
            )
        )
    chained = [commit for _, commit, version in ordered if version != manifest.UNCHAINED]
    if len(chained) == len(ordered):
        for commit, reason in manifest.unlinked(chained):
            raise manifest.CommitError(f"{store}: {commit.name}: {reason}")
    return [commit for _, commit, _ in ordered]


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
    """Remove replaced manifests, each after the files that only it names.

    In this order, an interruption cannot leave a file that no manifest names. Manifests of the
    newest format are removed first.
    """
    names = {commit.name for commit in commits}
    entries = chained.from_iterable(commit.files for commit in commits)
    paths = {entry.path for entry in entries}
    for name, commit, _ in sorted(manifests, key=lambda entry: -entry[2]):
        if name not in names:
            for path in {entry.path for entry in commit.files} - paths:
                store.remove(path)
            store.remove(f"{manifest.COMMITS}/{name}")
