"""Draws blocks of histories, fixtures, cases and findings by executing them again."""

from collections.abc import Iterable

from pubsub_emulator.emulator.network.records import BlockRecord
from pubsub_emulator.explorer.block_tree import draw_block
from pubsub_emulator.explorer.cards import Picture, record_card
from pubsub_emulator.explorer.recorder import walk_again
from pubsub_emulator.explorer.words import DisplayNames
from pubsub_emulator.pages.assets import styles
from pubsub_emulator.pages.document import document
from pubsub_emulator.pages.html import Html, join, tag
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.types import ParaId, RelayBlockNumber
from pubsub_emulator.primitives.words import counted
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.runtime.parachain.block import Candidate, ChainHead
from pubsub_emulator.runtime.parachain.validate import RelayContext, judge_block
from pubsub_emulator.runtime.rules import SHIPPED, Rules


def judge_again(  # noqa: PLR0917  # the inputs of a judgement
    chain: int,
    parent: Header,
    state: State,
    candidate: Candidate,
    relay: RelayContext,
    included_at: int | None = None,
    segment: int = 0,
    unpruned: tuple[tuple[ParaId, int], ...] = (),
    strategy: str | None = None,
    *,
    rules: Rules = SHIPPED,
) -> BlockRecord:
    """Execute a block on `state` by `rules` and return its record.

    The arguments after `relay`, except `rules`, are only copied into the record.
    """
    outcome, refusal = judge_block(ChainHead(parent, state, rules), candidate, relay)
    included_block = RelayBlockNumber(relay.number if included_at is None else included_at)
    return BlockRecord(
        ParaId(chain),
        segment,
        candidate,
        included_at=included_block,
        slot_now=relay.slot_now,
        relay_storage_root=relay.storage_root,
        unpruned=unpruned,
        outcome=outcome,
        refusal=refusal,
        strategy=strategy,
    )


def block_card(record: BlockRecord, state: State, rules: Rules = SHIPPED) -> str:
    """Return a block's card. The drawing shows how a verifier walks the proof by `rules`.

    If `state` does not allow a walk, the nodes of the proof are drawn without it.
    """
    try:
        walked = walk_again(record, state, rules)
    except PubsubError:
        walked = None
    if walked is None:
        drawn = draw_block(record, None, DisplayNames())
    else:
        drawn = draw_block(record, walked.plan, DisplayNames(), start=walked.start)
    return record_card(
        record, Picture(drawn, f"proof of {counted(len(record.candidate.inherent.proof), 'node')}")
    )


def cards_page(title: str, introduction: str, cards: Iterable[tuple[str, str]]) -> str:
    """Return a self-contained page with an introduction and cards, given with their headings."""
    parts: list[Html] = []
    for heading, card in cards:
        opened = card.replace("<details>", "<details open>", 1)
        parts += (tag("h2", heading), Html(opened))
    return document(title, styles("block/cards.css"), tag("p", introduction), join(parts))
