"""The listing of a history's files, with which an audit finds segments that may have changed.

The listing stays small because names, sizes and times of all files of a segment are reduced to one
checksum. Network and segment are read from a file's path. If the path does not tell them, the file
is listed by itself.
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
"""Checksums are sums modulo this number, so that they have a fixed size."""

OWN: Final = 0
"""The kind of files that are only read when their own segment is judged."""
SHARED: Final = 1
"""The kind of files that are also read when the next segment is judged."""
UNREAD: Final = 2
"""The kind of manifests. Tasks do not depend on their size or time, because the name of a manifest
depends on its content."""

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
        if segment is None and (match := _FILE.match(name)):
            segment = int(match[1])
    return None if network is None or segment is None else (network, segment, kind)


def place_of_manifest(name: str) -> tuple[str | None, int | None]:
    """Return the network and the segment in a manifest's name.

    Both are `None` if the name has another form.
    """
    network_and_segment, _, end = name.rpartition("-")
    network, _, segment = network_and_segment.rpartition("-")
    if not network or not segment.isdecimal() or not end:
        return None, None
    return network, int(segment)


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
    """Checksums over the files of a history, with their sizes and times.

    For a known network, all files of segments before the last known one share one checksum.
    """

    known: Mapping[str, int] = field(default_factory=dict)
    """By network, the last known segment, that is, the last one that an earlier run judged."""
    odd: dict[str, Stamp] = field(default_factory=dict)
    """Files whose paths do not tell network and segment, with their stamps."""
    _older_sums: dict[str, int] = field(default_factory=dict)
    """By known network, the checksum over the files of all segments before the last known one."""
    _sums: dict[tuple[str, int, int], int] = field(default_factory=dict)
    """By network, segment and kind, the checksum over the files of a segment."""
    _counts: dict[tuple[str, int], int] = field(default_factory=dict)
    """By network and segment, the number of data files."""

    @staticmethod
    def of(history: Store, known: Mapping[str, int]) -> "Listing":
        """List a history. Raises `OSError`."""
        listing = Listing(known)
        for folder in (*HISTORY_TABLES, COMMITS):
            for path, files in history.folders(folder):
                listing.add(path, files)
        return listing

    def add(self, path: str, files: Iterable[Seen]) -> None:
        """Add the files of a folder to the checksums and counts."""
        is_commits = path == COMMITS
        # The folder of the manifests does not tell network and segment, but their names do.
        network, folder_segment, kind = _folder(path)
        if is_commits:
            kind = UNREAD
        # A history can have millions of files, and a run without new files does little else than
        # this loop. So it uses local variables.
        known = self.known
        older_sums = self._older_sums
        sums = self._sums
        counts = self._counts
        segment = folder_segment
        for name, size, time in files:
            if is_commits:
                network, segment = place_of_manifest(name)
            elif folder_segment is None:
                match = _FILE.match(name)
                segment = None if match is None else int(match[1])
            if network is None or segment is None:
                self.odd[f"{path}/{name}"] = Stamp(size, time)
                continue
            # Checksums are added, so the order of the files does not matter.
            checksum = int.from_bytes(
                blake2b(f"{path}/{name}\n{size}\n{time}".encode(), digest_size=16).digest(),
                "little",
            )
            # The last known segment needs a checksum by kind, because the next one shares files.
            if segment < known.get(network, -1):
                older_sums[network] = older_sums.get(network, 0) + checksum
                continue
            sums[network, segment, kind] = sums.get((network, segment, kind), 0) + checksum
            if name.endswith(".parquet"):
                counts[network, segment] = counts.get((network, segment), 0) + 1

    def read_by(self, network: str, segment: int) -> list[int]:
        """Return checksums that change if one of the files changes that judging a segment reads.

        The segment must be after the last known one.
        """
        places = (
            (network, segment, OWN),
            (network, segment, SHARED),
            (network, segment - 1, SHARED),
        )
        return [self._sums.get(place, 0) % _MODULUS for place in places]

    def surplus(self, commit: Commit) -> int:
        """Return the number of a segment's data files that its manifest does not name.

        The segment must be after the last known one, because earlier files are not counted.
        """
        paths = {entry.path for entry in commit.files}
        named = sum(place_of(path) is not None for path in paths)
        return max(self._counts.get((commit.network, commit.segment), 0) - named, 0)

    def beyond(self, lasts: dict[str, int]) -> int:
        """Return the number of data files in segments after the last one, given by network."""
        return sum(
            count
            for (network, segment), count in self._counts.items()
            if segment > lasts.get(network, -1)
        )

    def sums(self, lasts: dict[str, int]) -> dict[str, str]:
        """Return, by network, a checksum in hex over all files up to the last segment in `lasts`.

        That segment must not be before the last known one.
        """
        totals = {network: self._older_sums.get(network, 0) for network in lasts}
        for (network, segment, _), value in self._sums.items():
            if segment <= lasts.get(network, -1):
                totals[network] += value
        return {network: f"{total % _MODULUS:032x}" for network, total in totals.items()}
