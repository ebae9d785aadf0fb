"""docs/decisions/path-of-one-key.md counts what the running code does with one published key."""

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from pubsub_emulator import HistoryWriter, Network, audit, key_from_data
from pubsub_emulator.trie import codec, nodes

PAGE = Path(__file__).resolve().parents[2] / "docs" / "decisions" / "path-of-one-key.md"
DETACHED = b"a value of more than 32 bytes, which no other state here has"
IN_ITS_LEAF = b"nothing else says this"
COLUMNS = ("instruction or entry encoded", "message or entry decoded", "block body encoded", "hash")
CONVERSIONS = {
    ("xcm/instructions.py", "encode_instruction"): COLUMNS[0],
    ("pallet_pubsub/publish.py", "publish"): COLUMNS[0],
    ("xcm/message.py", "decode"): COLUMNS[1],
    ("primitives/pubsub.py", "PublishedEntry.decode"): COLUMNS[1],
    ("framework/system.py", "encode_extrinsic"): COLUMNS[2],
    ("primitives/hashing.py", "blake2_256"): COLUMNS[3],
    ("primitives/hashing.py", "by_hash"): COLUMNS[3],
}
STAGES = {
    ("collator/author.py", "author"): "subscriber: author",
    ("parachain/validate.py", "validate_block"): "subscriber: chain",
    ("parachain/validate.py", "judge_block"): "subscriber: chain",
    ("history/rows.py", "block_row"): "history",
}


def _place(frame: FrameType) -> tuple[str, str]:
    code = frame.f_code
    return "/".join(Path(code.co_filename).parts[-2:]), code.co_qualname


def _arguments(frame: FrameType) -> bytes:
    return b"".join(_bytes_of(frame.f_locals[name]) for name in frame.f_code.co_varnames[: frame.f_code.co_argcount])


def _bytes_of(argument: Any) -> bytes:  # what a function is called with
    if isinstance(argument, bytes):
        return argument
    if isinstance(argument, tuple | list):
        return b"".join(each for each in argument if isinstance(each, bytes))
    found = getattr(argument, "value", b"")
    return found if isinstance(found, bytes) else b""


class Counts(dict[str, Counter[str]]):
    """Conversions of `value` by stage."""

    value = b""
    stage = ""

    def note(self, frame: FrameType, conversion: str) -> None:
        stage, caller = self.stage, frame.f_back
        while caller is not None:
            if stage.startswith("relay") and _place(caller) in STAGES:
                stage = STAGES[_place(caller)]
                break
            caller = caller.f_back
        self.setdefault(stage, Counter())[conversion] += 1

    @contextmanager
    def watched(self, stage: str) -> Iterator[None]:
        def look(frame: FrameType, event: str, _argument: object) -> None:
            conversion = CONVERSIONS.get(_place(frame)) if event == "call" else None
            whole_file = frame.f_back is not None and _place(frame.f_back) == ("history/manifest.py", "digest_of")
            if conversion is not None and self.value in _arguments(frame) and not whole_file:
                self.note(frame, conversion)

        self.stage = stage
        before = sys.getprofile()
        sys.setprofile(look)
        try:
            yield
        finally:
            sys.setprofile(before)


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counts:
    found, feed = Counts(), codec.feed

    def counted(hasher: Any, data: bytes) -> None:  # a blake2b object
        if found.value in data:
            found.note(sys._getframe(1), COLUMNS[3])
        feed(hasher, data)

    monkeypatch.setattr(nodes, "feed", counted)
    return found


def of_page() -> dict[str, tuple[int, ...]]:
    """The counts of the page's table by stage."""
    lines = (
        PAGE.read_text(encoding="utf-8")
        .partition(" hash of what |\n|---|---|---|---|---|---|\n")[2]
        .partition("\n\n")[0]
    )
    rows = [[cell.strip() for cell in line.split("|")[1:6]] for line in lines.splitlines()]
    return {stage: tuple(int(each or 0) for each in figures) for stage, *figures in rows}


@pytest.mark.parametrize(("value", "more"), [(DETACHED, 0), (IN_ITS_LEAF, 1)], ids=["detached", "in its leaf"])
def test_the_page_counts_what_is_done_with_one_key(value: bytes, more: int, counts: Counts, tmp_path: Path) -> None:
    """Author, chain and audit hash an entry in its leaf once more."""
    counts.value, key = value, key_from_data(b"key")
    delivered: list[bytes | None] = []
    network = Network.of(publishers=[1000], subscribers={2000: {1000: [key]}})
    with HistoryWriter(tmp_path / "history") as history:
        network.observe(history)
        with counts.watched("publisher"):
            network.publish(1000, key, value)
        for stage in ("relay block N", "relay block N + 1", "relay block N + 2"):
            with counts.watched(stage):
                [step] = network.step(1)
            delivered += [each.value for each in step.deliveries(2000)]
        with counts.watched("rest of the history"):
            network.finish()
    assert delivered == [value]
    with counts.watched("audit"):
        assert audit(tmp_path / "history", tmp_path / "audit", engine="python").exit_code == 0
    for stage in ("subscriber: author", "subscriber: chain", "audit"):
        counts[stage][COLUMNS[3]] -= more
    assert {stage: tuple(found[each] for each in COLUMNS) for stage, found in counts.items()} == of_page()
