"""The source of blocks in folders of chunks, as SQD's `substrate-dump` writes them.

    <base>/<first block of the folder>/<first>-<last>-<short hash of the last>/blocks.jsonl.gz
    <base>/metadata/<height>-<short hash>--<spec name>@<version>--<implementation>@<version>.gz

Each line of a chunk is a block: {"height", "hash", "block": answer of chain_getBlock,
"runtimeVersion": {"specName", "specVersion"}, …}. The line names the runtime in the state after the
block. The block itself was made with the runtime that the line before it names.
"""

import gzip
import itertools
import json
import re
import zlib
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from pubsub_emulator.client.errors import BadAnswer
from pubsub_emulator.client.metadata import Metadata, parse_metadata
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.spark_audit.fetch.block import VALUES, read_block
from pubsub_emulator.spark_audit.fetch.endpoints import Endpoints
from pubsub_emulator.spark_audit.fetch.errors import FetchError, WrongBlock
from pubsub_emulator.spark_audit.fetch.inherent import relay_proof
from pubsub_emulator.spark_audit.fetch.relay import RelayHeaders
from pubsub_emulator.spark_audit.history.address import Address
from pubsub_emulator.spark_audit.history.storage import Store, open_store
from pubsub_emulator.spark_audit.real_proofs.imported import RelayProof

_CHUNK: Final = re.compile(r"(\d+)/(\d+)-(\d+)-([0-9a-zA-Z]+)/blocks\.jsonl\.gz")
_RUNTIME: Final = re.compile(r"metadata/(\d+)-([0-9a-f]+)--(.+)@(\d+)--(.+)@(\d+)\.gz")
_MOST_LINE: Final = 64 * 1_048_576
"""The maximum length of a block's line, in bytes."""
_MOST_METADATA: Final = 16 * 1_048_576
"""The maximum size of unpacked metadata, in bytes."""


class _Line(NamedTuple):
    """A line of a chunk."""

    height: int
    """The number of its block."""
    place: str
    """The file and the number of the line, for messages."""
    data: dict[str, object]
    """The content."""


class _Chunk(NamedTuple):
    """A file with the blocks `first` to `last`."""

    first: int
    last: int
    path: str


class ChunkSource:
    """A parachain's blocks from chunks at an address.

    If ranges are requested in ascending order, each chunk is read once.
    """

    def __init__(
        self, network: str, chain: ParaId, base: Address | Store, relay: Endpoints | None = None
    ) -> None:
        self.network = network
        self.chain = chain
        self._store = open_store(base)
        self._relay = RelayHeaders(relay)
        self._chunks, self._runtimes = self._list()
        self._metadata: dict[str, Metadata] = {}
        self._lines: Iterator[_Line] = iter(())
        """The lines that were not read yet."""
        self._next_line: _Line | None = None
        """The line that was read last, which may belong to the next range."""
        self._before: tuple[int, str] = (-1, "")
        """Height and runtime of the line before `_next_line`."""

    async def newest(self) -> int:
        """Return the number of the last block in the last chunk."""
        return self._chunks[-1].last

    async def name(self) -> str | None:
        """Return the name of the last runtime, because chunks do not have the chain's name."""
        return self._before[1].partition("/")[0] or None

    async def blocks(
        self, first: int, last: int, advance: Callable[[int], None]
    ) -> list[RelayProof]:
        """Return the inherents of a range of blocks. Raises `FetchError`."""
        if self._next_line is None or self._next_line.height > first:
            self._lines = self._read(first)
            self._next_line = next(self._lines, None)
        proofs: list[RelayProof] = []
        while self._next_line is not None and self._next_line.height <= last:
            line = self._next_line
            height = line.height
            name = _runtime_name(line)
            # The block was made with the runtime that the previous line names, if that line is in
            # the chunks.
            previous_height, previous_name = self._before
            self._before = (height, name)
            if height >= first:
                if height != first + len(proofs):
                    raise WrongBlock(
                        f"{line.place}: block {height} follows where block {first + len(proofs)}"
                        " was expected"
                    )
                made_with = previous_name if previous_height == height - 1 else name
                proofs.append(self._proof(line, made_with))
                advance(len(proofs))
            self._next_line = next(self._lines, None)
        if len(proofs) != last - first + 1:
            raise WrongBlock(f"{self._store}: block {first + len(proofs)} is not in any chunk")
        return await self._relay.with_headers(proofs)

    def _list(self) -> tuple[list[_Chunk], dict[str, str]]:
        """Return all chunks in order, and the paths of metadata by runtime."""
        chunks: list[_Chunk] = []
        runtimes: dict[str, str] = {}
        for path in self._store.walk():
            if (match := _CHUNK.fullmatch(path)) is not None:
                chunks.append(_Chunk(int(match[2]), int(match[3]), path))
            elif (match := _RUNTIME.fullmatch(path)) is not None:
                runtimes.setdefault(f"{match[3]}/{int(match[4])}", path)
        chunks.sort(key=lambda chunk: chunk.first)
        if not chunks:
            example = "0000001000/0000001000-0000001999-ab12c"
            raise FetchError(f"{self._store}: no chunks found, which are folders like {example}")
        for previous, chunk in itertools.pairwise(chunks):
            if chunk.first <= previous.last:
                raise FetchError(f"{self._store}: {previous.path} and {chunk.path} overlap")
        return chunks, runtimes

    def _read(self, first: int) -> Iterator[_Line]:
        """Yield the lines from the chunk with block `first` on."""
        for chunk in self._chunks:
            if chunk.last < first:
                continue
            place = f"{self._store}/{chunk.path}"
            try:
                with self._store.open(chunk.path) as file, gzip.GzipFile(fileobj=file) as lines:
                    line_number = 0
                    while line := lines.readline(_MOST_LINE):
                        line_number += 1
                        yield self._line(chunk, f"{place}:{line_number}", line)
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise FetchError(f"{place}: {error}") from None

    def _line(self, chunk: _Chunk, place: str, line: bytes) -> _Line:
        """Parse a line. Raises `WrongBlock` if it is not a block of the chunk."""
        try:
            data = json.loads(line)
            height = data["height"]
            in_chunk = chunk.first <= height <= chunk.last
        except (ValueError, KeyError, TypeError, RecursionError):
            raise WrongBlock(f"{place}: the line is not a block in JSON with a height") from None
        if not in_chunk:
            raise WrongBlock(
                f"{place}: block {height} is in a chunk of blocks {chunk.first} to {chunk.last}"
            )
        return _Line(height, place, data)

    def _proof(self, line: _Line, name: str) -> RelayProof:
        """Return the inherent of the block in a line, with its relay proof.

        `name` is the name of the runtime that made the block.
        """
        place = line.place
        stated_hash = VALUES.hash(f"{place}: hash", line.data.get("hash"))
        block = read_block(place, line.data.get("block"), stated_hash)
        if block.header.number != line.height:
            raise WrongBlock(f"{place}: block {line.height} has the number {block.header.number}")
        metadata = self._runtime(place, name)
        source = json.dumps(
            {"chunk": place.rpartition("/blocks.jsonl.gz")[0].removeprefix(f"{self._store}/")}
        )
        return relay_proof(place, metadata, block, self.network, self.chain, name, source)

    def _runtime(self, place: str, name: str) -> Metadata:
        """Return the metadata of a runtime."""
        if name not in self._metadata:
            path = self._runtimes.get(name)
            if path is None:
                raise FetchError(f"{place}: the folder metadata has no file of runtime {name}")
            try:
                with self._store.open(path) as file, gzip.GzipFile(fileobj=file) as content:
                    self._metadata[name] = parse_metadata(content.read(_MOST_METADATA))
            except (EOFError, zlib.error, gzip.BadGzipFile, BadAnswer) as error:
                raise FetchError(f"{self._store}/{path}: {error}") from None
        return self._metadata[name]


def _runtime_name(line: _Line) -> str:
    """Return the runtime that a line names, as name and version joined by a slash."""
    version = line.data.get("runtimeVersion")
    try:
        return f"{version['specName']}/{int(version['specVersion'])}"  # type: ignore[index]  # checked by trying
    except (KeyError, TypeError, ValueError):
        raise WrongBlock(f"{line.place}: no runtimeVersion") from None
