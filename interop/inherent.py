"""Has Rust decode and encode parachain inherents and requests of relay keys.

    python interop/inherent.py interop/rust/target/release/replay < LINES
    python interop/inherent.py interop/rust/target/release/replay --random 1000

A line has a kind (`data`, `messages`, `call` or `request`) and bytes in hexadecimal digits. Each
one is decoded by `replay --inherent` with the types of Cumulus and encoded again, and the result is
printed. `--random` makes values of every kind here, and compares bytes and fields.

Exit code 0: Rust encodes every value to the same bytes. 1: it does not, or cannot decode one.
"""

import argparse
import json
import random
import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.header import Header, aura_pre_digest
from pubsub_emulator.primitives.hexadecimal import hexed, unhex
from pubsub_emulator.primitives.scale import encode_bytes, encode_compact
from pubsub_emulator.primitives.types import Hash, Slot

KINDS: Final = ("data", "messages", "call", "request")


class Value(NamedTuple):
    """An encoded value, with its fields as Rust shows them if they are known."""

    kind: str
    encoded: bytes
    fields: Any = None


def ask(program: str, values: Sequence[Value]) -> list[dict[str, Any]]:
    """Return Rust's answer to each value: `again` and `fields`, or `error`."""
    lines = "".join(f"{value.kind} {hexed(value.encoded)}\n" for value in values)
    done = subprocess.run(  # noqa: S603  # the program that the user names
        [program, "--inherent"], input=lines, capture_output=True, text=True, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def differences(values: Sequence[Value], answers: Sequence[dict[str, Any]]) -> list[str]:
    """Return a line for each value that Rust reads or encodes in another way."""
    found = []
    for value, answer in zip(values, answers, strict=True):
        shown = f"{value.kind} {hexed(value.encoded)}"
        if "error" in answer:
            found.append(f"not decoded: {answer['error']}: {shown}")
        elif answer["again"] != hexed(value.encoded):
            found.append(f"encoded again as {answer['again']}: {shown}")
        elif value.fields is not None and answer["fields"] != value.fields:
            found.append(f"decoded as {answer['fields']}, it is {value.fields}: {shown}")
    return found


def read_lines(lines: Iterable[str]) -> list[Value]:
    """Return the values of lines with a kind and digits. Raises `ValueError` with the line."""
    values = []
    for at, line in enumerate(lines, start=1):
        kind, _, digits = line.strip().partition(" ")
        if kind not in KINDS:
            raise ValueError(f"line {at}: {kind[:20]!r} is not one of {', '.join(KINDS)}")
        try:
            values.append(Value(kind, unhex(digits)))
        except ValueError as error:
            raise ValueError(f"line {at}: {error}") from None
    return values


# Random values


def _u32(number: int) -> bytes:
    return number.to_bytes(4, "little")


def _list(items: Sequence[bytes]) -> bytes:
    return encode_compact(len(items)) + b"".join(items)


def _hash(draw: random.Random) -> Hash:
    return Hash(draw.randbytes(32))


def _header(draw: random.Random) -> Header:
    number = draw.randrange(1 << 32)
    digest = (aura_pre_digest(Slot(draw.randrange(1 << 64))),)
    return Header(_hash(draw), number, _hash(draw), _hash(draw), digest)


def _data(draw: random.Random) -> Value:
    head = draw.randbytes(draw.choice((0, 1, 63, 64, 200)))
    number, size = draw.randrange(1 << 32), draw.randrange(1 << 32)
    root = _hash(draw)
    nodes = sorted({draw.randbytes(draw.randrange(70)) for _ in range(draw.randrange(5))})
    headers = [_header(draw) for _ in range(draw.randrange(3))]
    peer = draw.randbytes(draw.choice((0, 38, 64))) if draw.random() < 0.5 else None
    encoded = b"".join(
        (
            encode_bytes(head),
            _u32(number),
            root,
            _u32(size),
            _list([encode_bytes(node) for node in nodes]),
            _list([header.encode() for header in headers]),
            b"\x00" if peer is None else b"\x01" + encode_bytes(peer),
        )
    )
    fields = {
        "parent_head": hexed(head),
        "relay_parent_number": number,
        "relay_parent_storage_root": hexed(root),
        "max_pov_size": size,
        "trie_nodes": [hexed(node) for node in nodes],
        "descendants": [hexed(blake2_256(header.encode())) for header in headers],
        "collator_peer_id": None if peer is None else hexed(peer),
    }
    return Value("data", encoded, fields)


def _messages(draw: random.Random) -> Value:
    rows: dict[str, list[Any]] = {
        "downward": [],
        "downward_hashed": [],
        "horizontal": [],
        "horizontal_hashed": [],
    }
    encoded = b""
    for name, shown in rows.items():
        items = []
        for _ in range(draw.randrange(4)):
            sender = [draw.randrange(1 << 32)] if name.startswith("horizontal") else []
            sent_at = draw.randrange(1 << 32)
            content = _hash(draw) if name.endswith("hashed") else draw.randbytes(draw.randrange(99))
            shown.append([*sender, sent_at, hexed(content)])
            stored = content if name.endswith("hashed") else encode_bytes(content)
            items.append(b"".join((*map(_u32, sender), _u32(sent_at), stored)))
        encoded += _list(items)
    return Value("messages", encoded, rows)


def _call(draw: random.Random) -> Value:
    indices = draw.randbytes(2)
    data, messages = _data(draw), _messages(draw)
    fields = {"indices": list(indices), "data": data.fields, "messages": messages.fields}
    return Value("call", indices + data.encoded + messages.encoded, fields)


def _request(draw: random.Random) -> Value:
    items = []
    fields: list[dict[str, str]] = []
    for _ in range(draw.randrange(5)):
        key = draw.randbytes(draw.randrange(70))
        if draw.random() < 0.5:
            items.append(b"\x00" + encode_bytes(key))
            fields.append({"top": hexed(key)})
        else:
            child = b"pubsub" + draw.randbytes(4)
            items.append(b"\x01" + encode_bytes(child) + encode_bytes(key))
            fields.append({"child": hexed(child), "key": hexed(key)})
    return Value("request", _list(items), fields)


_MAKERS: Final = {"data": _data, "messages": _messages, "call": _call, "request": _request}


def main() -> int:
    """Compare the values that are given or made, and print the result."""
    parser = argparse.ArgumentParser(description="has Rust read inherents and requests")
    parser.add_argument("program", help="the program `replay` of interop/rust")
    parser.add_argument("--random", type=int, metavar="N", help="make N values of every kind")
    parser.add_argument("--seed", type=int, default=1, help="what the values are drawn from")
    given = parser.parse_args()
    if given.random is None:
        try:
            values = read_lines(sys.stdin)
        except ValueError as error:
            print(error, file=sys.stderr)  # noqa: T201  # a program
            return 2
    else:
        draw = random.Random(given.seed)  # noqa: S311  # cases, no secrets
        values = [make(draw) for _ in range(given.random) for make in _MAKERS.values()]
    answers = ask(given.program, values)
    if given.random is None:
        for value, answer in zip(values, answers, strict=True):
            print(value.kind, json.dumps(answer.get("fields", answer)))  # noqa: T201  # as above
    found = differences(values, answers)
    for line in found[:5]:
        print(line)  # noqa: T201  # as above
    print(f"{len(values):,} values, {len(found):,} differences")  # noqa: T201  # as above
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
