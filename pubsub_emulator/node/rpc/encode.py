"""Headers, blocks and bytes as a Substrate node writes them in JSON; hexadecimal digits are in lower case."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, TypeVar

from pubsub_emulator.node.chain.block import Block
from pubsub_emulator.node.chain.timeline import Advance
from pubsub_emulator.node.rpc.errors import ANSWER_TOO_BIG, RpcError
from pubsub_emulator.node.rpc.session import compact
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.types import Hash

T = TypeVar("T")

MOST_ANSWER: Final = 15 * 1_048_576
"""Bytes of an answer."""


def too_big(most: int = MOST_ANSWER) -> RpcError:
    """The error in place of an answer that is too long."""
    return RpcError(ANSWER_TOO_BIG, "Response is too big", f"Exceeded max limit of {most}")


def fitting(items: Iterable[T], size: Callable[[T], int]) -> Iterator[T]:
    """The items of an answer. Raises `RpcError` once they are longer than an answer may be, not when all are made."""
    left = MOST_ANSWER
    for item in items:
        left -= size(item)
        if left < 0:
            raise too_big()
        yield item


def maybe_hexed(data: bytes | None) -> str | None:
    """Bytes as hexadecimal digits with `0x`; `None` for `None`."""
    return None if data is None else hexed(data)


def header_json(header: Header) -> dict[str, object]:
    """A header as legacy methods give it."""
    return {
        "parentHash": hexed(header.parent_hash),
        "number": hex(header.number),
        "stateRoot": hexed(header.state_root),
        "extrinsicsRoot": hexed(header.extrinsics_root),
        "digest": {"logs": [hexed(item.encode()) for item in header.digest]},
    }


def block_json(block: Block) -> dict[str, object]:
    """A block as `chain_getBlock` gives it."""
    extrinsics = [hexed(extrinsic) for extrinsic in block.body]
    return {"block": {"header": header_json(block.header), "extrinsics": extrinsics}, "justifications": None}


class Written(str):
    """A result that is JSON already: long hexadecimal digits need no search for what to escape."""

    __slots__ = ()


def proof_text(block: Block, keys: Iterable[bytes], child_keys: Mapping[bytes, Iterable[bytes]]) -> Written:
    """A read proof: every trie node that reading these keys touches."""
    nodes: dict[Hash, bytes] = {}
    block.state.prove(keys, child_keys, nodes)
    listed = '","0x'.join(map(bytes.hex, nodes.values()))
    shown = f'["0x{listed}"]' if listed else "[]"
    return Written(f'{{"at":"{hexed(block.hash)}","proof":{shown}}}')


def header_text(advance: Advance, block: Block) -> str:
    """A header's JSON, made once for all who are told of a step."""
    text = advance.texts.get(block.hash)
    if text is None:
        text = advance.texts[block.hash] = compact(header_json(block.header))
    return text
