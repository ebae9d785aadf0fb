"""Answers of a node that are kept in a folder for the next call.

Only answers about a block that is named by its hash are kept, because they never change. A reader
verifies such answers by their hashes, so a file that somebody changed is as harmless as a node that
lies. Answers are written when the reader has accepted them, and answers that it refuses are
removed, so that one bad answer does not stay.
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
    # At run time it needs aiohttp, which only a call that asks a node needs.
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
    """Return the folder of a user's kept answers."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "pubsub-emulator" / "answers"


class KeptAnswers:
    """A node whose answers are kept. It is called like the node."""

    def __init__(self, node: "NodeCalls", folder: Path) -> None:
        self.node = node
        self.folder = folder
        self.reused = 0
        """The number of answers that were not asked for again."""
        self._new: dict[Path, bytes] = {}
        """Answers that are not in the folder yet, by their files."""
        self._new_bytes = 0
        self._used: set[Path] = set()

    @property
    def url(self) -> str:
        """Return the node's address, for errors."""
        return self.node.url

    def ask(self, method: str, *params: object) -> object:
        """Return a kept answer, or call the node. Raises `ClientError`."""
        path = self._place(method, params)
        if path is None:
            return self.node.ask(method, *params)
        # The name is a hash, so another file of this name is the same answer or damaged.
        with suppress(Unreadable, OSError):
            found = read_json(path, MOST_ANSWER)
            self._used.add(path)
            self.reused += 1
            return found
        answer = self.node.ask(method, *params)
        data = json.dumps(answer).encode()
        has_room = self._new_bytes + len(data) <= MOST_KEPT
        if answer is not None and len(data) <= MOST_ANSWER and has_room and path not in self._new:
            self._new[path] = data
            self._new_bytes += len(data)
        return answer

    @contextmanager
    def accepted(self) -> Iterator[None]:
        """Keep the answers within this context if it ends well, and else remove those it used.

        A node that is not there, or a user who interrupts, says nothing against kept answers.
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
        """Return the file of an answer, or `None` if the answer can change."""
        last = params[-1] if params else None
        if method not in _METHODS or not isinstance(last, str) or len(last) != _HASH_DIGITS:
            return None
        name = blake2_256(json.dumps([self.url, method, *params]).encode())
        return self.folder / f"{name.hex()}{_ENDING}"

    def _write(self) -> None:
        """Write new answers. A folder that cannot be written is not an error: nothing is kept."""
        if not self._new:
            return
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._make_room(self._new_bytes)
            for path, data in self._new.items():
                whole = path.with_suffix(f".{os.getpid()}")
                whole.write_bytes(data)
                whole.replace(path)

    def _make_room(self, wanted: int) -> None:
        """Remove the oldest answers until new ones of a size have room."""
        found = [(path, path.stat()) for path in self.folder.glob(f"*{_ENDING}")]
        size = wanted + sum(status.st_size for _, status in found)
        for path, status in sorted(found, key=lambda each: each[1].st_mtime):
            if size <= MOST_KEPT:
                return
            path.unlink(missing_ok=True)
            size -= status.st_size
