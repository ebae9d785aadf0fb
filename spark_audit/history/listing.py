"""Sizes and times of a history's files, added up by network and segment: a cheap test of what may have changed.

A file's network and segment are read from its path, as writers of this project name it. Sizes and times of all files
of a segment are added up in one number, so the memory of a listing does not grow with the number of files. A path that
says nothing of network and segment is kept by itself.
"""

import re
from collections.abc import Iterable
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
"""Files that judging their segment reads."""
SHARED: Final = 1
"""Files that judging the segment after it reads as well."""
UNREAD: Final = 2
"""Files of the segment that no judgement reads, its manifest included."""

_KINDS: Final = {schema.RELAY_HEADERS.name: SHARED, schema.CHECKPOINTS.name: SHARED} | dict.fromkeys(
    (schema.EVENTS.name, schema.TRUTH.name), UNREAD
)


def place_of(path: str) -> tuple[str, int, int] | None:
    """Network, segment and kind of a file by its path, `None` where the path does not tell them."""
    folder, _, name = path.rpartition("/")
    return _Folder.of(folder).place_of(name)


@dataclass(frozen=True, slots=True)
class _Folder:
    """Network, segment and kind of the files in a folder, by its path; `None` where the path does not tell."""

    path: str
    network: str | None
    segment: int | None
    kind: int

    @staticmethod
    def of(path: str) -> "_Folder":
        table, _, rest = path.partition("/")
        if table == COMMITS:
            return _Folder(path, None, None, UNREAD)
        network, segment = _NETWORK.search(f"/{rest}/"), _SEGMENT.search(f"/{rest}/")
        return _Folder(
            path,
            None if network is None else network[1],
            None if segment is None else int(segment[1]),
            _KINDS.get(table, OWN),
        )

    def place_of(self, name: str) -> tuple[str, int, int] | None:
        """Network, segment and kind of a file of the folder."""
        if self.network is None:
            return _place_of_manifest(name) if self.path == COMMITS else None
        if self.segment is not None:
            return self.network, self.segment, self.kind
        found = _FILE.match(name)
        return None if found is None else (self.network, int(found[1]), self.kind)


def _place_of_manifest(name: str) -> tuple[str, int, int] | None:
    network, _, end = name.rpartition("-")
    network, _, segment = network.rpartition("-")
    return (network, int(segment), UNREAD) if network and segment.isdecimal() and end else None


@dataclass(slots=True)
class Listing:
    """The files of a history as they were found."""

    odd: dict[str, Stamp] = field(default_factory=dict)
    """Those whose path does not say where they belong."""
    _sums: dict[tuple[str, int, int], int] = field(default_factory=dict)
    _counts: dict[tuple[str, int], int] = field(default_factory=dict)

    @staticmethod
    def of(history: Store) -> "Listing":
        """List a history. Raises `OSError`."""
        out = Listing()
        for folder in (*HISTORY_TABLES, COMMITS):
            for path, files in history.folders(folder):
                out.add(path, files)
        return out

    def add(self, path: str, files: Iterable[Seen]) -> None:
        """Count the files of a folder."""
        folder = _Folder.of(path)
        sums, counts = self._sums, self._counts
        for name, size, time in files:
            place = folder.place_of(name)
            if place is None:
                self.odd[f"{path}/{name}"] = Stamp(size, time)
                continue
            if name.endswith(".parquet"):
                segment = place[:2]
                counts[segment] = counts.get(segment, 0) + 1
            seen = blake2b(f"{path}/{name}\n{size}\n{time}".encode(), digest_size=16).digest()
            sums[place] = sums.get(place, 0) + int.from_bytes(seen, "little")

    def read_by(self, network: str, segment: int) -> list[int]:
        """Numbers that change when files do that judging a segment reads."""
        places = ((network, segment, OWN), (network, segment, SHARED), (network, segment - 1, SHARED))
        return [self._sums.get(place, 0) % _MODULUS for place in places]

    def surplus(self, commit: Commit) -> int:
        """How many data files of a segment its manifest does not name."""
        named = sum(place_of(entry.path) is not None for entry in commit.files)
        return max(self._counts.get((commit.network, commit.segment), 0) - named, 0)

    def beyond(self, lasts: dict[str, int]) -> int:
        """How many data files are of no segment that there is."""
        return sum(count for (network, segment), count in self._counts.items() if segment > lasts.get(network, -1))

    def sums(self, lasts: dict[str, int]) -> dict[str, str]:
        """For each network one number over its files up to a segment, in hex."""
        totals = dict.fromkeys(lasts, 0)
        for (network, segment, _), value in self._sums.items():
            if segment <= lasts.get(network, -1):
                totals[network] += value
        return {network: f"{total % _MODULUS:032x}" for network, total in totals.items()}
