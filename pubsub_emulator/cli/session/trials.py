"""Dry runs, and drawings of proofs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pubsub_emulator.cli.blocks import delivery_rows, refusal_rows
from pubsub_emulator.cli.pages import Doing, Grid, Line, Shown
from pubsub_emulator.cli.session.command import CommandError, Given, Kind, Parameter, look
from pubsub_emulator.cli.session.session import Session, hexadecimal, number
from pubsub_emulator.cli.session.stepping import failures, summary_line
from pubsub_emulator.emulator.files import write_whole
from pubsub_emulator.emulator.network import Step
from pubsub_emulator.explorer.block_tree import draw_block
from pubsub_emulator.explorer.cards import Picture, picture_of_proof
from pubsub_emulator.explorer.words import Names
from pubsub_emulator.primitives.pubsub import derive_child_key
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.trie import StateTrie

_KINDS: Final = ("block", "keys", "child")


def _dry_run(session: Session, given: Given) -> Iterator[Shown]:
    blocks = number(given.maybe("BLOCKS") or "1", "BLOCKS is a whole number, at least 1", 1)
    before = session.checkpoint()
    now = session.network.number
    built: list[Step] = []
    try:
        for done in range(1, blocks + 1):
            step = session.advance()
            built.append(step)
            yield summary_line(step)
            yield from failures(session, step)
            yield Doing("trying blocks", done, blocks)
    finally:
        session.adopt(before)
    records = [record for step in built for record in step.records]
    header, delivered = delivery_rows(records, session.key_name)
    if delivered:
        yield Grid("what would be delivered", header, delivered)
    header, refused = refusal_rows(records)
    if refused:
        yield Grid("what would be refused", header, refused)
    yield Line(f"nothing was kept: the network is at relay block {now}, and your requests still wait")


def _draw(session: Session, given: Given) -> Iterator[Shown]:
    path, kind, chain = Path(given.one("FILE")), given.one("WHAT"), given.one("CHAIN")
    if path.suffix != ".svg":
        raise CommandError(f"{path}: the name of a drawing must end with .svg")
    picture = (
        _block(session, chain, given.many("KEY"))
        if kind == "block"
        else _proof(session, kind, chain, given.many("KEY"))
    )
    try:
        write_whole(path, picture.svg)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}") from error
    yield Line(f"written: {path}, {picture.title}")


def _block(session: Session, chain: str, words: tuple[str, ...]) -> Picture:
    para = session.chain(number(chain, "a parachain's id is a whole number")).para
    at = number(words[0], "BLOCK is the height of a relay block") if words else None
    for step in reversed(session.steps):
        records = [record for record in step.records if record.chain == para and at in {None, step.number}]
        if records:
            record = records[-1]
            plan = None if record.outcome is None else record.outcome.plan
            names = Names({}, {**session.scenario_names, **session.names})
            verdict = "" if record.refusal is None else f", refused: {record.refusal.verdict.value}"
            title = f"proof of block {record.candidate.header.number} of {para}, in relay block {step.number}{verdict}"
            return Picture(draw_block(record, plan, names), title)
    raise CommandError(f"{para} built no block {'yet' if at is None else f'in relay block {at} that is in memory'}")


def _proof(session: Session, kind: str, chain: str, words: tuple[str, ...]) -> Picture:
    if not words:
        raise CommandError("KEY is missing: give the keys to prove")
    nodes: dict[Hash, bytes] = {}
    if kind == "child":
        para = session.chain(number(chain, "a publisher's id is a whole number")).para
        trie = session.network.relay.state.children.get(derive_child_key(para))
        if trie is None:
            raise CommandError(f"{para} has no child trie: it has published nothing")
        keys = [bytes(session.key(word)) for word in words]
    else:
        trie = _top(session, chain)
        keys = [hexadecimal(word, "a storage key") for word in words]
    trie.prove(keys, nodes)
    return picture_of_proof(trie.root(), nodes.values(), keys)


def _top(session: Session, chain: str) -> StateTrie:
    state: State = (
        session.network.relay.state
        if chain == "relay"
        else session.chain(number(chain, "a chain is `relay` or a parachain's id")).state
    )
    return state.top


TRIALS: Final = (
    look(
        "dry-run",
        "Show what the next relay blocks would do, with deliveries and refusals; keep nothing.",
        _dry_run,
        (Parameter("BLOCKS", Kind.NUMBER, optional=True),),
        ("dry-run", "dry-run 3"),
        aliases=("try",),
    ),
    look(
        "draw",
        "Draw a proof as a trie into an SVG file: a block's, or one of storage keys or published keys.",
        _draw,
        (
            Parameter("FILE", Kind.FILE),
            Parameter("WHAT", Kind.WORD, words=_KINDS),
            Parameter("CHAIN", Kind.CHAIN),
            Parameter("KEY", Kind.KEY, optional=True, many=True),
        ),
        (
            "draw block.svg block 3000",
            "draw block.svg block 3000 7",
            "draw read.svg child 1000 1000/3",
            "draw top.svg keys relay 0x1cb6f36e027abb2091cfb5110ab5087f06155b3cd9a8c9e5e9a23fd5dc13a5ed",
        ),
        "block   the proof in the newest block of CHAIN, refused ones too, or in the one of relay block KEY\n"
        "child   published KEYs of publisher CHAIN, in its trie on the relay chain\n"
        "keys    raw storage KEYs of CHAIN, as 0x and digits",
    ),
)
