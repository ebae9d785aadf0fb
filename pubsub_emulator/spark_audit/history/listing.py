"""The listing of a history's files: a cheap test of which segments may have changed.

Names, sizes and times of all files of a network and segment are added up into one number, so that
the listing stays small. Network and segment are read from a file's path. A file whose path does not
tell them is listed by itself.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final

from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.manifest import COMMITS, HISTORY_TABLES, Commit
from pubsub_emulator.spark_audit.history.storage import Seen, Stamp, Store

_NETWORK: Final = re.compile(r"/network=([^/]+)/")
_SEGMENT: Final = re.compile(r"/segment=(\d{1,10})/$")
_FILE: Final = re.compile(r"(\d{8,10})-[0-9a-f]{16}\.parquet$")
_MODULUS: Final = 1 << 128
"""Sums are taken modulo this, so that they have a fixed size."""

OWN: Final = 0
"""Kind of a file that is read or checked only when its own segment is judged."""
SHARED: Final = 1
"""Kind of a file that is also read when the next segment is judged."""
UNREAD: Final = 2
"""Kind of a manifest. Its name depends on its content, so it need not be watched."""

_KINDS: Final = {schema.RELAY_HEADERS.name: SHARED, schema.CHECKPOINTS.name: SHARED}


def place_of(path: str) -> tuple[str, int, int] | None:
    """Return network, segment and kind of a file by its path.

    Returns `None` if the path does not tell network and segment.
    """
    folder, _, name = path.rpartition("/")
    if folder == COMMITS:
        network, segment = place_of_manifest(name)
        kind = UNREAD
    else:
        network, segment, kind = _folder(folder)
        if segment is None and (found := _FILE.match(name)):
            segment = int(found[1])
    return None if network is None or segment is None else (network, segment, kind)


def place_of_manifest(name: str) -> tuple[str | None, int | None]:
    """Return network and segment of a manifest by its name.

    Both are `None` if the name does not tell them.
    """
    network, _, end = name.rpartition("-")
    network, _, segment = network.rpartition("-")
    return (network, int(segment)) if network and segment.isdecimal() and end else (None, None)


def _folder(path: str) -> tuple[str | None, int | None, int]:
    """Return network, segment and kind of the files in a folder, as far as its path tells them.

    In format 3, the path of a folder does not tell the segment; the names of the files do.
    """
    network = _NETWORK.search(f"{path}/")
    segment = _SEGMENT.search(f"{path}/")
    return (
        None if network is None else network[1],
        None if segment is None else int(segment[1]),
        _KINDS.get(path.partition("/")[0], OWN),
    )


@dataclass(slots=True)
class Listing:
    """The files of a history, with sizes and times, as they were found.

    In a known network, all files of segments before the known one are one number.
    """

    known: Mapping[str, int] = field(default_factory=dict)
    """By network, the last segment up to which it is known."""
    odd: dict[str, Stamp] = field(default_factory=dict)
    """Files whose paths do not say where they belong."""
    _olds: dict[str, int] = field(default_factory=dict)
    """By known network, the sum over the files of earlier segments."""
    _sums: dict[tuple[str, int, int], int] = field(default_factory=dict)
    """By network, segment and kind, the sum over the files."""
    _counts: dict[tuple[str, int], int] = field(default_factory=dict)
    """By network and segment, the number of data files."""

    @staticmethod
    def of(history: Store, known: Mapping[str, int]) -> "Listing":
        """List a history. Raises `OSError`."""
        out = Listing(known)
        for folder in (*HISTORY_TABLES, COMMITS):
            for path, files in history.folders(folder):
                out.add(path, files)
        return out

    def add(self, path: str, files: Iterable[Seen]) -> None:
        """Count the files of a folder."""
        is_commits = path == COMMITS
        network, fixed, kind = (None, None, UNREAD) if is_commits else _folder(path)
        known, olds, sums, counts, segment = self.known, self._olds, self._sums, self._counts, fixed
        # A history can have millions of files, and a run without new ones does little else than
        # this. So the loop uses local variables.
        for name, size, time in files:
            if is_commits:
                network, segment = place_of_manifest(name)
            elif fixed is None:
                found = _FILE.match(name)
                segment = None if found is None else int(found[1])
            if network is None or segment is None:
                self.odd[f"{path}/{name}"] = Stamp(size, time)
                continue
            # Digests are added up, so the order in which files are found does not matter.
            seen = int.from_bytes(
                blake2b(f"{path}/{name}\n{size}\n{time}".encode(), digest_size=16).digest(),
                "little",
            )
            # The last known segment itself is needed by kind, since the next one shares its files.
            if segment < known.get(network, -1):
                olds[network] = olds.get(network, 0) + seen
                continue
            sums[network, segment, kind] = sums.get((network, segment, kind), 0) + seen
            if name.endswith(".parquet"):
                counts[network, segment] = counts.get((network, segment), 0) + 1

    def read_by(self, network: str, segment: int) -> list[int]:
        """Return numbers that change when a file changes that judging this segment reads.

        The segment must be after the known ones.
        """
        places = (
            (network, segment, OWN),
            (network, segment, SHARED),
            (network, segment - 1, SHARED),
        )
        return [self._sums.get(place, 0) % _MODULUS for place in places]

    def surplus(self, commit: Commit) -> int:
        """Return the number of data files of a segment that its manifest does not name.

        The segment must be after the known ones.
        """
        named = sum(place_of(path) is not None for path in {entry.path for entry in commit.files})
        return max(self._counts.get((commit.network, commit.segment), 0) - named, 0)

    def beyond(self, lasts: dict[str, int]) -> int:
        """Return the number of data files of segments after the last ones."""
        return sum(
            count
            for (network, segment), count in self._counts.items()
            if segment > lasts.get(network, -1)
        )

    def sums(self, lasts: dict[str, int]) -> dict[str, str]:
        """Return, for each network, a sum in hex over all its files up to a segment.

        That segment must not be before the known one.
        """
        totals = {network: self._olds.get(network, 0) for network in lasts}
        for (network, segment, _), value in self._sums.items():
            if segment <= lasts.get(network, -1):
                totals[network] += value
        return {network: f"{total % _MODULUS:032x}" for network, total in totals.items()}
