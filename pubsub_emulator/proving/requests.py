"""A request for relay keys, from digits, a file or a node."""

import re
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Final, Protocol

from pydantic import Field

from pubsub_emulator.client.places import is_url
from pubsub_emulator.files.errors import InputError
from pubsub_emulator.files.settings import StrictModel, read
from pubsub_emulator.files.shown import safe
from pubsub_emulator.files.untrusted import read_bytes
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.hexadecimal import unhex
from pubsub_emulator.primitives.pubsub import derive_child_key
from pubsub_emulator.primitives.storage_keys import CHILD_STORAGE_PREFIX
from pubsub_emulator.primitives.types import U32_MAX, ParaId
from pubsub_emulator.runtime.framework.relay_request import (
    MAX_REQUEST_BYTES,
    ChildKey,
    RelayProofRequest,
    TopKey,
)
from pubsub_emulator.runtime.framework.request_proof import joined

_MOST_TEXT: Final = 2 * MAX_REQUEST_BYTES + 100
"""The maximum size of a file with a request in digits, in bytes."""


_DIGITS: Final = re.compile(r"(?:0x)?(?:[0-9a-fA-F]{2})+")
"""The text of a request in digits."""


class KeyNames(Protocol):
    """Resolves names of keys."""

    def key(self, text: str) -> bytes:
        """Return the storage key of a name. Raises `ClientError`."""


class ChildKeys(StrictModel):
    """Keys of one child trie in a file."""

    trie: Annotated[int, Field(ge=0, le=U32_MAX)] | str
    """A publisher's id, or the storage key as 0x…, with or without the prefix of child tries."""
    keys: Annotated[tuple[str, ...], Field(strict=False)]
    """Keys as 0x…"""


class RequestFile(StrictModel):
    """A request in a TOML file."""

    # Lists of TOML become tuples, so the fields with tuples are not strict.
    top: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """Keys of the top trie: 0x… or names."""
    child: Annotated[tuple[ChildKeys, ...], Field(strict=False)] = ()
    """Keys of child tries."""


def whole_request(
    request_text: str | None,
    top: Sequence[str],
    children: Iterable[tuple[str, str]],
    names: KeyNames,
    seconds: float,
) -> RelayProofRequest:
    """Return one request for all keys that the arguments name.

    `request_text` is SCALE as 0x…, a file or a URL. `top` has keys of the top trie, `children` has
    pairs of a child trie and a key of it. A node has `seconds` for each answer.

    Raises `InputError`, `SettingsError`, and `ClientError` if a node does not return its request.
    """
    requests = [] if request_text is None else [request_of(request_text, names, seconds)]
    keys = [TopKey(names.key(text)) for text in top]
    child_keys = [ChildKey(child_trie(trie), _hex("--child", key)) for trie, key in children]
    requests.append(RelayProofRequest((*keys, *child_keys)))
    request = joined(*requests)
    try:
        request.encode()
    except ScaleError as error:
        raise InputError(f"the request: {error}") from None
    return request


def request_of(text: str, names: KeyNames, seconds: float) -> RelayProofRequest:
    """Return the request in digits, in a file, or of a parachain's node."""
    if is_url(text):
        from pubsub_emulator.client.live_state import BlockingNode
        from pubsub_emulator.client.request_states import ChainStates

        with closing(BlockingNode(text, seconds)) as node:
            return ChainStates(node).keys_to_prove()
    if text.startswith("0x"):
        return _decoded("--request", text)
    path = Path(text)
    if not text or not path.is_file():
        raise InputError(f"--request {safe(text[:200])}: neither 0x…, a file nor a URL")
    if path.suffix != ".toml":
        digits = read_bytes(path, _MOST_TEXT, InputError).decode("ascii", "replace").strip()
        if _DIGITS.fullmatch(digits) is None:
            raise InputError(
                f"{path}: neither a request in hexadecimal digits, nor TOML in a file whose name"
                " ends with .toml"
            )
        return _decoded(str(path), digits)
    file = read(path, RequestFile)
    keys = [TopKey(names.key(key_text)) for key_text in file.top]
    child_keys: list[ChildKey] = []
    for child in file.child:
        trie = child_trie(str(child.trie))
        child_keys += [ChildKey(trie, _hex(f"{path}: child.keys", key)) for key in child.keys]
    return RelayProofRequest((*keys, *child_keys))


def child_trie(text: str) -> bytes:
    """Return the storage key of the child trie that a text names.

    The text is a publisher's id or the key itself in hexadecimal digits, with or without the prefix
    of child tries. Raises `InputError`.
    """
    if text.isascii() and text.isdecimal() and int(text) <= U32_MAX:
        return derive_child_key(ParaId(int(text)))
    if not text.startswith("0x"):
        raise InputError(f"{safe(text[:80])}: neither a parachain's id nor a storage key as 0x…")
    key = _hex("a child trie", text).removeprefix(CHILD_STORAGE_PREFIX)
    if not key:
        raise InputError(f"{text}: the storage key of a child trie cannot be empty")
    return key


def _decoded(place: str, text: str) -> RelayProofRequest:
    """Decode a request in hexadecimal digits. `place` names them in the `InputError`."""
    try:
        return RelayProofRequest.decode(_hex(place, text))
    except ScaleError as error:
        raise InputError(f"{place}: not a RelayProofRequest: {error}") from None


def _hex(place: str, text: str) -> bytes:
    """Parse hexadecimal digits. `place` names them in the `InputError` for other text."""
    try:
        return unhex(text)
    except ValueError:
        raise InputError(f"{place}: {safe(text[:80])}: not hexadecimal digits") from None
