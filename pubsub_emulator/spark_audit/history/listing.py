"""Sizes and times of a history's files, added up by network and segment: a cheap test of what may have changed.

Both are read from a file's path and all of a segment are one number, so a listing stays small. A path that says nothing
of them is kept by itself.
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

OWN: Final = 0
"""Files that judging their segment reads or checks."""
SHARED: Final = 1
"""Files that judging the segment after it reads as well."""
UNREAD: Final = 2
"""The manifest of the segment, which is called what it holds."""

_KINDS: Final = {schema.RELAY_HEADERS.name: SHARED, schema.CHECKPOINTS.name: SHARED}


def place_of(path: str) -> tuple[str, int, int] | None:
    """Network, segment and kind of a file by its path, `None` where the path does not tell them."""
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
    """Network and segment of a manifest by its name."""
    network, _, end = name.rpartition("-")
    network, _, segment = network.rpartition("-")
    return (network, int(segment)) if network and segment.isdecimal() and end else (None, None)


def _folder(path: str) -> tuple[str | None, int | None, int]:
    """Network, segment and kind of the files in a folder of a table."""
    network, segment = _NETWORK.search(f"{path}/"), _SEGMENT.search(f"{path}/")
    return (
        None if network is None else network[1],
        None if segment is None else int(segment[1]),
        _KINDS.get(path.partition("/")[0], OWN),
    )


@dataclass(slots=True)
class Listing:
    """A history's files as they were found; those before the segment up to which a network is known are one number."""

    known: Mapping[str, int] = field(default_factory=dict)
    """Networks by name, and the last segment up to which they are known."""
    odd: dict[str, Stamp] = field(default_factory=dict)
    """Files whose path does not say where they belong."""
    _olds: dict[str, int] = field(default_factory=dict)  # the numbers of known networks
    _sums: dict[tuple[str, int, int], int] = field(default_factory=dict)
    _counts: dict[tuple[str, int], int] = field(default_factory=dict)

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
        for name, size, time in files:  # many: a run with nothing new costs little else
            if is_commits:
                network, segment = place_of_manifest(name)
            elif fixed is None:
                found = _FILE.match(name)
                segment = None if found is None else int(found[1])
            if network is None or segment is None:
                self.odd[f"{path}/{name}"] = Stamp(size, time)
                continue
            seen = int.from_bytes(blake2b(f"{path}/{name}\n{size}\n{time}".encode(), digest_size=16).digest(), "little")
            if segment < known.get(network, -1):
                olds[network] = olds.get(network, 0) + seen
                continue
            sums[network, segment, kind] = sums.get((network, segment, kind), 0) + seen
            if name.endswith(".parquet"):
                counts[network, segment] = counts.get((network, segment), 0) + 1

    def read_by(self, network: str, segment: int) -> list[int]:
        """Numbers that change when files do that judging a segment reads, one after what is known."""
        places = ((network, segment, OWN), (network, segment, SHARED), (network, segment - 1, SHARED))
        return [self._sums.get(place, 0) % _MODULUS for place in places]

    def surplus(self, commit: Commit) -> int:
        """The number of data files of a segment, one after what is known, that its manifest does not name."""
        named = sum(place_of(path) is not None for path in {entry.path for entry in commit.files})
        return max(self._counts.get((commit.network, commit.segment), 0) - named, 0)

    def beyond(self, lasts: dict[str, int]) -> int:
        """The number of data files that belong to no segment."""
        return sum(count for (network, segment), count in self._counts.items() if segment > lasts.get(network, -1))

    def sums(self, lasts: dict[str, int]) -> dict[str, str]:
        """For each network one number over its files up to a segment, in hex; none before the known one."""
        totals = {network: self._olds.get(network, 0) for network in lasts}
        for (network, segment, _), value in self._sums.items():
            if segment <= lasts.get(network, -1):
                totals[network] += value
        return {network: f"{total % _MODULUS:032x}" for network, total in totals.items()}
