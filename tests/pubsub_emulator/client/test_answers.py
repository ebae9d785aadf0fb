"""Answers of nodes: limits in bytes and in pieces."""

import pytest
from pydantic import TypeAdapter

from pubsub_emulator.client import answers
from pubsub_emulator.client.errors import BadAnswer


def block(*extrinsics: str) -> object:
    return {"block": {"header": {}, "extrinsics": list(extrinsics)}, "justifications": None}


def read(kind: TypeAdapter[answers.SignedBlock], found: object) -> tuple[bytes, ...]:
    return answers.read(kind, found, "ws://node: chain_getBlock").block.extrinsics


def test_a_block_as_large_as_the_pov_of_a_parachain_is_read() -> None:
    """Its largest extrinsic fills the 10 MiB; validation data alone has thousands of digits."""
    largest = 10 * 1_048_576
    found = read(answers.BLOCK, block("0x" + "ab" * largest, "0x0405"))
    assert [len(each) for each in found] == [largest, 2]


def test_a_block_is_limited_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MOST_BLOCK", 10)
    assert len(read(answers.BLOCK, block("0x" + "00" * 5, "0x" + "00" * 3))) == 2
    with pytest.raises(BadAnswer, match="extrinsics have at most 10 bytes") as failed:
        read(answers.BLOCK, block("0x" + "00" * 6, "0x" + "00" * 5))
    assert len(str(failed.value)) < 400


def test_a_block_is_limited_in_pieces() -> None:
    with pytest.raises(BadAnswer, match="at most 65,536 extrinsics"):
        read(answers.BLOCK, block(*["0x"] * (answers.MOST_EXTRINSICS + 1)))


@pytest.mark.parametrize(
    "bad",
    [
        "0x0",
        "00",
        "0xzz",
        5,
        None,
        ["0x00"],
    ],
)
def test_an_extrinsic_that_is_not_hexadecimal_is_refused(bad: object) -> None:
    with pytest.raises(BadAnswer, match=r"block\.extrinsics\.1"):
        read(answers.BLOCK, {"block": {"extrinsics": ["0x00", bad]}})


def test_an_error_shows_the_beginning_of_an_answer() -> None:
    with pytest.raises(BadAnswer) as failed:
        answers.read(answers.TEXT, "x" * 1_000_000, "ws://node: system_chain")
    assert len(str(failed.value)) < 250
