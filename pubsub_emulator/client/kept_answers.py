"""Answers of a node that are kept in a folder for the next call.

Only answers about a block that is named by its hash are kept, because they never change. Readers
verify such answers by their hashes, so a manipulated file is as harmless as a lying node. New
answers are written after the reader has accepted them. Kept answers that it refuses are removed,
so that the next call asks the node again.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pubsub_emulator.client.errors import NodeUnavailable
from pubsub_emulator.files.untrusted import Unreadable, read_json
from pubsub_emulator.primitives.hashing import blake2_256

if TYPE_CHECKING:
    # The module imports aiohttp, and this one must load without it.
    from pubsub_emulator.client.live_state import NodeCalls

MOST_KEPT: Final = 256 * 1_048_576
"""The maximum size of all kept answers in bytes. The oldest are removed first."""
MOST_ANSWER: Final = 16 * 1_048_576
"""The maximum size of one answer that is kept, in bytes."""
_METHODS: Final = frozenset(
    {"chain_getHeader", "state_getReadProof", "state_getChildReadProof", "state_getMetadata"}
)
"""Methods whose last parameter is the hash of a block."""
_HASH_DIGITS: Final = 66
"""The length of a hash as text, with its 0x."""
_ENDING: Final = ".json"


def default_folder() -> Path:
    """Return the folder of a user's kept answers, below the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "pubsub-emulator" / "answers"


class KeptAnswers:
    """A node whose answers are kept. It has the methods of `NodeCalls`."""

    def __init__(self, node: "NodeCalls", folder: Path) -> None:
        self.node = node
        self.folder = folder
        self.reused = 0
        """The number of answers that came from the folder."""
        self._new: dict[Path, bytes] = {}
        """Answers that are not in the folder yet, by their files."""
        self._new_bytes = 0
        """The size of all new answers in bytes."""
        self._used: set[Path] = set()
        """The files of the answers that were returned since the last `accepted`."""

    @property
    def url(self) -> str:
        """Return the node's address, for errors."""
        return self.node.url

    def ask(self, method: str, *params: object) -> object:
        """Return a kept answer, or call the node. Raises `ClientError`."""
        path = self._place(method, params)
        if path is None:
            return self.node.ask(method, *params)
        # If the file is missing or cannot be read, the node is asked instead.
        with suppress(Unreadable, OSError):
            answer = read_json(path, MOST_ANSWER)
            self._used.add(path)
            self.reused += 1
            return answer
        answer = self.node.ask(method, *params)
        data = json.dumps(answer).encode()
        has_room = self._new_bytes + len(data) <= MOST_KEPT
        if answer is not None and len(data) <= MOST_ANSWER and has_room and path not in self._new:
            self._new[path] = data
            self._new_bytes += len(data)
        return answer

    @contextmanager
    def accepted(self) -> Iterator[None]:
        """Write the new answers if the context succeeds, or remove the kept ones that it used.

        If the node is unavailable or the user interrupts, the kept answers stay, because they are
        not the cause.
        """
        try:
            yield
        except (NodeUnavailable, KeyboardInterrupt):
            raise
        except BaseException:
            for path in self._used:
                with suppress(OSError):
                    path.unlink(missing_ok=True)
            raise
        else:
            self._write()
        finally:
            self._new.clear()
            self._new_bytes = 0
            self._used.clear()

    def _place(self, method: str, params: tuple[object, ...]) -> Path | None:
        """Return the file of an answer, or `None` if the answer can change and must not be kept.

        The answers of some methods about a block by its hash never change.
        """
        last = params[-1] if params else None
        if method not in _METHODS or not isinstance(last, str) or len(last) != _HASH_DIGITS:
            return None
        name = blake2_256(json.dumps([self.url, method, *params]).encode())
        return self.folder / f"{name.hex()}{_ENDING}"

    def _write(self) -> None:
        """Write the new answers, or drop them if the folder cannot be written."""
        if not self._new:
            return
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._make_room(self._new_bytes)
            for path, data in self._new.items():
                # Other processes must never see a part of a file.
                unfinished = path.with_suffix(f".{os.getpid()}")
                unfinished.write_bytes(data)
                unfinished.replace(path)

    def _make_room(self, wanted: int) -> None:
        """Remove the oldest answers until there is room for `wanted` more bytes."""
        files = [(path, path.stat()) for path in self.folder.glob(f"*{_ENDING}")]
        size = wanted + sum(status.st_size for _, status in files)
        for path, status in sorted(files, key=lambda file: file[1].st_mtime):
            if size <= MOST_KEPT:
                return
            path.unlink(missing_ok=True)
            size -= status.st_size
