"""Migration of a history from an older format to the present one, in place.

In format 1, manifests do not name each other. In format 2, each chain has a file of its own. Both
have unsigned integers of 64 bits. Old segments are read, checked and written again beside the old
files. Those are removed only when the network is complete in the new format, so that an interrupted
migration can be continued.
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

Found = tuple[str, manifest.Commit, int]
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
    """Bring a history to the present format.

    Raises `CommitError` if it is damaged or incomplete, and `OSError`.
    """
    store = open_store(address)
    networks: dict[str, list[Found]] = {}
    names = [name for name in store.names(manifest.COMMITS) if name.endswith(".json")]
    if not names:
        raise manifest.CommitError(f"{store}: there is no history: it has no manifests")
    for name in names:
        try:
            commit, version = manifest.read_any_manifest(store, name)
        except manifest.CommitError as error:
            raise manifest.CommitError(f"{store}/{manifest.COMMITS}/{name}: {error}") from None
        networks.setdefault(commit.network, []).append((name, commit, version))
    whole = {network: _whole_chain(found) for network, found in networks.items()}
    todo = {
        name: _in_order(store, name, found) for name, found in networks.items() if not whole[name]
    }
    total = sum(map(len, todo.values()))
    done = 0
    for network, commits in todo.items():
        before: manifest.Commit | None = None
        for commit in commits:
            advance(done, total)
            before = _write(store, commit, before)
            whole[network].append(before)
            done += 1
    for network, found in networks.items():
        _remove_others(store, whole[network], found)
    last = {network: commits[-1].digest for network, commits in whole.items()}
    return Migrated(total, sum(map(len, whole.values())), manifest.head_of(last))


def _whole_chain(found: Sequence[Found]) -> list[manifest.Commit]:
    """Return a network's manifests in the present format, from the first segment to the last one.

    Returns an empty list if some are missing, that is, if the network must be migrated.
    """
    after = {commit.previous: commit for _, commit, version in found if version == manifest.FORMAT}
    out: list[manifest.Commit] = []
    while (
        commit := after.get(out[-1].digest if out else None)
    ) is not None and commit.segment == len(out):
        out.append(commit)
    return out if len(out) == 1 + max(commit.segment for _, commit, _ in found) else []


def _in_order(store: Store, network: str, found: Sequence[Found]) -> list[manifest.Commit]:
    """Return the segments that must be rewritten, in order.

    After an interrupted migration, a segment may exist in two formats; the older one counts. Raises
    `CommitError` if a segment is missing or ambiguous.
    """
    segments: dict[int, list[Found]] = {}
    for each in found:
        segments.setdefault(each[1].segment, []).append(each)
    ordered: list[Found] = []
    for segment in range(max(segments) + 1):
        if segment not in segments:
            raise manifest.CommitError(f"{store}: segment {segment} of {network} is missing")
        oldest = min(version for *_, version in segments[segment])
        same = [each for each in segments[segment] if each[2] == oldest]
        if len(same) > 1 and oldest != manifest.FORMAT:
            raise manifest.CommitError(
                f"{store}: there are two manifests for segment {segment} of {network}"
            )
        before = ordered[-1][1].digest if ordered else None
        # Two manifests of the present format can be left by interrupted migrations.
        ordered.append(next((each for each in same if each[1].previous == before), same[0]))
    chained = [commit for _, commit, version in ordered if version != manifest.UNCHAINED]
    if len(chained) == len(ordered):
        for commit, why in manifest.unlinked(chained):
            raise manifest.CommitError(f"{store}: {commit.name}: {why}")
    return [commit for _, commit, _ in ordered]


def _write(
    store: Store, commit: manifest.Commit, before: manifest.Commit | None
) -> manifest.Commit:
    """Write a segment in the present format.

    Raises `CommitError` if some of it cannot be read, and `OSError`.
    """
    name = f"{commit.segment:08d}"
    parts = [
        HistoryPart(manifest.HISTORY_TABLES[each.table], _rows(store, each), name, each.chain)
        for each in commit.files
    ]
    files = write_files(store, commit.network, commit.segment, parts, [])
    previous = None if before is None else before.digest
    written, _ = write_manifest(
        store, commit.network, commit.segment, files, commit.next_positions, previous
    )
    return written


def _rows(store: Store, entry: manifest.FileEntry) -> list[Row]:
    """Return the rows of a file. Raises `CommitError` if some cannot be read."""
    out: list[Row] = []
    for unit in read_file(store, entry):
        if isinstance(unit, Fault):
            raise manifest.CommitError(f"{store}/{unit.path}: {unit.error}; it was not migrated")
        out += unit.to_pylist()
    return out


def _remove_others(store: Store, kept: Sequence[manifest.Commit], found: Iterable[Found]) -> None:
    """Remove replaced manifests, each after the files that only it names.

    In this order, an interruption leaves no file without a manifest that names it.
    """
    names = {commit.name for commit in kept}
    entries = chained.from_iterable(commit.files for commit in kept)
    paths = {entry.path for entry in entries}
    for name, commit, _ in sorted(found, key=lambda each: -each[2]):
        if name not in names:
            for path in {entry.path for entry in commit.files} - paths:
                store.remove(path)
            store.remove(f"{manifest.COMMITS}/{name}")
