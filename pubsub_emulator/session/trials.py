"""Dry runs, and drawings of proofs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pubsub_emulator.explorer.block_tree import draw_block
from pubsub_emulator.explorer.cards import Picture, picture_of_proof
from pubsub_emulator.explorer.words import DisplayNames
from pubsub_emulator.files.pages import Doing, Line, Shown
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.session.answers import DeliveredKey, RelayBlockOutcome
from pubsub_emulator.session.command import (
    CommandError,
    SessionCommand,
    command,
    hexadecimal,
    number,
    write_file,
)
from pubsub_emulator.session.inspection import deliveries, delivery_grid, refusal_grid
from pubsub_emulator.session.node_api import RELAY
from pubsub_emulator.session.session import Session
from pubsub_emulator.session.stepping import summary
from pubsub_emulator.trie import StateTrie

TRIALS: Final[list[SessionCommand]] = []


@command(TRIALS, "dry-run [BLOCKS]", "dry-run", "dry-run 3", aliases=("try",))
def _dry_run(session: Session, blocks: str = "1") -> Iterator[Shown]:
    """Show what the next relay blocks would do, with deliveries and refusals; keep nothing.

    The node builds the blocks and goes back; its other users see that.
    """
    count = number(blocks, "BLOCKS is a whole number, at least 1", 1)
    before = session.checkpoint()
    built: list[RelayBlockOutcome] = []
    delivered: list[DeliveredKey] = []
    try:
        for done in range(1, count + 1):
            block = session.advance()
            built.append(block)
            delivered += deliveries(session, block.hash)
            yield from summary(session, block)
            yield Doing("trying blocks", done, count)
    finally:
        session.adopt(before)
        session.drop(before)
    if delivered:
        yield delivery_grid(session, "what would be delivered", delivered)
    if any(block.refused for block in built):
        yield refusal_grid("what would be refused", built, session.paras)
    yield Line(
        f"no block was kept: the network is at relay block {before.number}, and your requests still"
        " wait"
    )


@command(
    TRIALS,
    "draw FILE WHAT CHAIN [KEY…]",
    "draw block.svg block 3000",
    "draw block.svg block 3000 7",
    "draw read.svg child 1000 1000/3",
    "draw top.svg keys relay 0x1cb6f36e027abb2091cfb5110ab5087f06155b3cd9a8c9e5e9a23fd5dc13a5ed",
    words={"WHAT": ("block", "keys", "child")},
)
def _draw(session: Session, file: str, kind: str, chain: str, *words: str) -> Iterator[Shown]:
    """Draw a proof as a trie into an SVG file: a block's, or one of storage keys or published keys.

    block   the proof in the newest block of CHAIN, refused ones too, or in that of relay block KEY
            (for a node at a URL, `pubsub explore --connect` draws them)
    child   published KEYs of publisher CHAIN, in its trie on the relay chain
    keys    raw storage KEYs of CHAIN, as 0x and digits
    """
    path = Path(file)
    if path.suffix != ".svg":
        raise CommandError(f"{path}: the name of a drawing must end with .svg")
    picture = (
        _block(session, chain, words) if kind == "block" else _proof(session, kind, chain, words)
    )
    write_file(path, picture.svg)
    yield Line(f"written: {path}, {picture.title}")


def _block(session: Session, chain: str, words: tuple[str, ...]) -> Picture:
    """Draw the proof of a parachain's newest block, or of that in the relay block `words` names.

    Raises `CommandError`.
    """
    para = session.para(chain)
    height = number(words[0], "BLOCK is the height of a relay block") if words else None
    for moment in reversed(session.node.local().timeline.moments()):
        records = [
            record
            for record in moment.records
            if record.chain == para and height in {None, moment.number}
        ]
        if records:
            record = records[-1]
            plan = None if record.outcome is None else record.outcome.plan
            names = DisplayNames({}, {**session.scenario_names, **session.names})
            verdict = "" if record.refusal is None else f", refused: {record.refusal.verdict.value}"
            block_height = record.candidate.header.number
            title = (
                f"proof of block {block_height} of {para}, in relay block {moment.number}{verdict}"
            )
            return Picture(draw_block(record, plan, names), title)
    if height is None:
        raise CommandError(f"{para} built no block yet")
    raise CommandError(
        f"{para} built no block in relay block {height}, or that relay block is not kept"
    )


def _proof(session: Session, kind: str, chain: str, words: tuple[str, ...]) -> Picture:
    """Prove the keys that `words` name in the present state, and draw the proof.

    With the kind `child`, they are keys of publisher `chain`, otherwise storage keys of `chain`.
    Raises `CommandError`.
    """
    if not words:
        raise CommandError("KEY is missing: give the keys to prove")
    nodes: dict[Hash, bytes] = {}
    trie: StateTrie | None
    if kind == "child":
        para = session.para(chain, "a publisher's id is a whole number")
        child, keys = session.rules.placed(para, [session.key(word) for word in words])
        trie = session.state(RELAY).children.get(child)
        if trie is None:
            raise CommandError(f"{para} has no child trie: it has published nothing")
    else:
        trie = session.state(chain).top
        keys = [hexadecimal(word, "a storage key") for word in words]
    trie.prove(keys, nodes)
    return picture_of_proof(trie.root(), nodes.values(), keys)
