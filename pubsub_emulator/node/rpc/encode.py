"""Writes headers, blocks and bytes as JSON in the form of a Substrate node.

Hexadecimal digits are in lower case.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, TypeVar

from pubsub_emulator.node.chain.block import StoredBlock
from pubsub_emulator.node.chain.timeline import Advance
from pubsub_emulator.node.rpc.errors import ANSWER_TOO_BIG, RpcError
from pubsub_emulator.node.rpc.session import compact
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.types import Hash

T = TypeVar("T")

MOST_ANSWER: Final = 15 * 1_048_576
"""The maximum size of an answer in bytes."""


def too_big(most: int = MOST_ANSWER) -> RpcError:
    """Return the error that replaces an answer which is too long."""
    return RpcError(ANSWER_TOO_BIG, "Response is too big", f"Exceeded max limit of {most}")


def fitting(items: Iterable[T], size: Callable[[T], int]) -> Iterator[T]:
    """Yield items while their total size fits into an answer.

    Raises `RpcError` at the first item beyond the limit, before the rest of a huge answer is
    computed.
    """
    left = MOST_ANSWER
    for item in items:
        left -= size(item)
        if left < 0:
            raise too_big()
        yield item


def maybe_hexed(data: bytes | None) -> str | None:
    """Return bytes as hexadecimal digits with `0x`, and `None` for `None`."""
    return None if data is None else hexed(data)


def header_json(header: Header) -> dict[str, object]:
    """Return a header in the form of the legacy methods."""
    return {
        "parentHash": hexed(header.parent_hash),
        "number": hex(header.number),
        "stateRoot": hexed(header.state_root),
        "extrinsicsRoot": hexed(header.extrinsics_root),
        "digest": {"logs": [hexed(item.encode()) for item in header.digest]},
    }


def block_json(block: StoredBlock) -> dict[str, object]:
    """Return a block in the form of `chain_getBlock`."""
    extrinsics = [hexed(extrinsic) for extrinsic in block.body]
    return {
        "block": {"header": header_json(block.header), "extrinsics": extrinsics},
        "justifications": None,
    }


class JsonText(str):
    """A result that is already JSON text. It is inserted into the answer unchanged.

    This avoids searching megabytes of hexadecimal digits for characters to escape.
    """

    __slots__ = ()


def proof_text(
    block: StoredBlock, keys: Iterable[bytes], child_keys: Mapping[bytes, Iterable[bytes]]
) -> JsonText:
    """Return a read proof: all trie nodes that are visited when these keys are read.

    `child_keys` contains the keys in child tries, by the trie's storage key.
    """
    nodes: dict[Hash, bytes] = {}
    block.state.prove(keys, child_keys, nodes)
    listed = '","0x'.join(map(bytes.hex, nodes.values()))
    array = f'["0x{listed}"]' if listed else "[]"
    return JsonText(f'{{"at":"{hexed(block.hash)}","proof":{array}}}')


def header_text(advance: Advance, block: StoredBlock) -> str:
    """Return a header as JSON text. It is written once for all subscribers of a step."""
    text = advance.texts.get(block.hash)
    if text is None:
        text = advance.texts[block.hash] = compact(header_json(block.header))
    return text
