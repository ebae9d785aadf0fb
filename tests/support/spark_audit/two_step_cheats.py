"""Cheats in two steps, with another cheat between the steps: does it hide anything?

A collator shows a cheat's first half on block n and its second half on block n + 2. Two histories
are made of one network: in the second one, every other strategy is tried on block n + 1. An audit
of the second history has to find everything that it finds in the first one.

All pairs take 20 to 70 minutes of CPU for each shape; from the folder `tests`:

    python -m support.spark_audit.two_step_cheats [--first NAME …] [--between NAME …]
        [--shape SHAPE …]
"""

import sys
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from support.spark_audit.audits import KEYS, SUBSCRIBER, small_network

from pubsub_emulator.collator.author import CannotAuthor
from pubsub_emulator.collator.cheats import BUILT_IN, STRATEGIES, Situation, attempt
from pubsub_emulator.collator.cheats.seals import _in_slot
from pubsub_emulator.collator.cheats.strategy import Strategy
from pubsub_emulator.emulator.network import Network
from pubsub_emulator.emulator.network.records import (
    AuthorityRecord,
    BlockRecord,
    CheckpointRecord,
    RelayRecord,
    SubscriptionRecord,
)
from pubsub_emulator.primitives.draws import Draws
from pubsub_emulator.primitives.types import U64_MAX
from pubsub_emulator.runtime.parachain.block import Candidate, ChainHead, Verdict
from pubsub_emulator.runtime.parachain.validate import RelayContext, judge_block
from pubsub_emulator.spark_audit.audit.run import audit
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.store import HistoryWriter
from pubsub_emulator.spark_audit.judge.findings import EQUIVOCATION, Thresholds
from pubsub_emulator.spark_audit.judge.patterns import SLOT_WINDOW

SHAPES: Final = {"one segment": 10_000, "segments": 2, "forks": 7, "upgrades": 7}
"""The kinds of histories, with the relay blocks of a segment.

A pair takes three blocks. With two blocks in a segment its halves are always in different
segments. With seven, the border falls on another block of each next pair.
"""

LIMITS: Final = Thresholds(
    relay_lag=1, stalled_blocks=1, at_budget_blocks=1, budget_ppm=1, starved_blocks=1
)
"""Thresholds with which honest blocks have habits, too."""

_TRIES: Final = 3
"""Different blocks of a strategy that are tried between the two halves."""

Found = Counter[tuple[Any, ...]]
"""How often each finding was made."""


def _far(name: str, ahead: int) -> Strategy:
    """Return the strategy of an honest block for another slot of the same author."""

    def propose(situation: Situation, _draws: Draws) -> Any:
        slot = situation.slot + ahead * len(situation.seeds)
        return _in_slot(situation, slot) if 0 <= slot <= U64_MAX else None

    return Strategy(
        name, "move the audit's memory", (Verdict.BAD_SEAL,), on_proof=False, propose=propose
    )


FAR: Final = {
    name: _far(name, ahead)
    for name, ahead in (
        ("slot-at-the-window", SLOT_WINDOW // 2),
        ("slot-behind-the-window", SLOT_WINDOW + 1),
        ("slot-very-far", 1 << 40),
        ("slot-long-ago", -2),
    )
}
"""Strategies that claim slots which the memory must not follow."""

ALL: Final = {**{name: STRATEGIES[name] for name in BUILT_IN}, **FAR}
"""Every strategy that is tried, by name."""


@dataclass
class _Branch:
    """One network with two histories: one without the cheats between, and one with them."""

    network: Network
    plain: HistoryWriter
    hidden: HistoryWriter
    heads: dict[int, ChainHead] = field(default_factory=dict)
    """The newest block of each chain."""
    before: list[Candidate] = field(default_factory=list)
    """Candidates that both histories have before the next honest block."""
    between: list[Candidate] = field(default_factory=list)
    """Candidates that only the second history has, before the honest block and again after it."""

    def relay_block(self, record: RelayRecord) -> None:
        for writer in (self.plain, self.hidden):
            writer.relay_block(record)

    def authorities(self, record: AuthorityRecord) -> None:
        for writer in (self.plain, self.hidden):
            writer.authorities(record)

    def subscriptions(self, record: SubscriptionRecord) -> None:
        for writer in (self.plain, self.hidden):
            writer.subscriptions(record)

    def checkpoint(self, record: CheckpointRecord) -> None:
        self.heads[record.chain] = ChainHead(record.header, record.state)
        for writer in (self.plain, self.hidden):
            writer.checkpoint(record)

    def candidate(self, record: BlockRecord) -> None:
        mine = record.chain == SUBSCRIBER
        before, self.before = (self.before, []) if mine else ([], self.before)
        between, self.between = (self.between, []) if mine else ([], self.between)
        self._show(before, record, (self.plain, self.hidden))
        self._show(between, record, (self.hidden,))
        for writer in (self.plain, self.hidden):
            writer.candidate(record)
        if record.outcome is not None:
            self.heads[record.chain] = ChainHead(record.candidate.header, record.outcome.state)
        self._show(between, record, (self.hidden,))

    def _show(
        self, candidates: Iterable[Candidate], honest: BlockRecord, writers: Sequence[HistoryWriter]
    ) -> None:
        """Judge candidates as the network would, and record those that it refuses."""
        for candidate in candidates:
            number = candidate.inherent.relay_parent_number
            block = self.network.relay.block(number)
            # The relay block that includes the honest block did not exist when it was judged.
            known = block is not None and number < honest.included_at
            root = block.header.state_root if block is not None and known else None
            relay = RelayContext(number, root, honest.slot_now)
            outcome, refusal = judge_block(self.heads[SUBSCRIBER], candidate, relay)
            if outcome is not None:
                continue
            record = replace(
                honest,
                candidate=candidate,
                relay_storage_root=root,
                outcome=None,
                refusal=refusal,
                unpruned=(),
            )
            for writer in writers:
                writer.candidate(record)

    def cheats(self, chosen: Strategy, count: int) -> Iterator[Candidate]:
        """Yield different blocks of a strategy for the next block's slot."""
        try:
            situation = self.network.situation(SUBSCRIBER)
        except CannotAuthor:
            return
        shown: set[bytes] = {situation.honest.header.hash()}
        for seed in range(count):
            made = attempt(situation, (chosen,), bytes([seed]) * 32)
            if made is not None and made.candidate.header.hash() not in shown:
                shown.add(made.candidate.header.hash())
                yield made.candidate

    def step(self, at: int) -> None:
        """Publish something and build a block."""
        self.network.publish(1000, KEYS[at % len(KEYS)], b"%d " % at * (1 + at % 40))
        self.network.publish(2100, KEYS[at % 4], b"value %d" % at)
        self.network.step()


def campaign(folder: Path, first: str, between: Sequence[str], shape: str) -> tuple[Found, Found]:
    """Return what an audit finds without and with strategies between the halves of `first`."""
    network = small_network(segment_length=SHAPES[shape], skew=2)
    network.step(2)
    forks = [("left", network.fork()), ("right", network.fork())] if shape == "forks" else []
    for name, each in forks or [("dev", network)]:
        _record(folder, name, each, first, between, upgrades=shape == "upgrades")
    return _audited(folder, "plain"), _audited(folder, "hidden")


def _record(
    folder: Path,
    name: str,
    network: Network,
    first: str,
    between: Sequence[str],
    *,
    upgrades: bool,
) -> None:
    """Write the two histories of one network."""
    with (
        HistoryWriter(folder / "plain", name) as plain,
        HistoryWriter(folder / "hidden", name) as hidden,
    ):
        branch = _Branch(network, plain, hidden)
        network.observe(branch)
        for at, other in enumerate(between):
            made = list(branch.cheats(ALL[first], 2))
            branch.before += made[:1]
            branch.step(3 * at)
            if upgrades:
                spec = network.parachain(SUBSCRIBER).spec()
                keys = tuple(KEYS[: 2 + at % 8])
                items = {**spec.subscriptions, network.parachain(1000).para: keys}
                network.upgrade(replace(spec, subscriptions=items))
            branch.between += branch.cheats(ALL[other], _TRIES)
            branch.step(3 * at + 1)
            # A block that was made for the slot of the first half, and one for the present slot.
            branch.before += [*(made[1:] or made), *branch.cheats(ALL[first], 1)]
            branch.step(3 * at + 2)
        network.finish()


def _audited(folder: Path, name: str) -> Found:
    """Return the findings of an audit.

    The position of a candidate is not compared, since a candidate before it moves it. An
    equivocation has the id of its slot and author, whichever two blocks show it.
    """
    result = audit(folder / name, folder / f"{name}-audit", engine="python", thresholds=LIMITS)
    assert result.read_errors == 0, f"{name}: {result.read_errors} faults"
    found: Found = Counter()
    for row in result.results.rows(schema.FINDINGS):
        subject = (row["id"],) if row["code"] == EQUIVOCATION else (row["number"], row["block"])
        found[row["network"], row["chain"], row["code"], row["severity"], *subject] += 1
    return found


def main(arguments: Sequence[str]) -> int:
    """Run the campaign and print the hidden cheats. Return 1 if there are any."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--first", action="append", choices=ALL)
    parser.add_argument("--between", action="append", choices=ALL)
    parser.add_argument("--shape", action="append", choices=SHAPES)
    chosen = parser.parse_args(arguments)
    surprises = 0
    for shape in chosen.shape or SHAPES:
        for first in chosen.first or ALL:
            with TemporaryDirectory() as name:
                between = chosen.between or list(ALL)
                plain, hidden = campaign(Path(name), first, between, shape)
            lost = plain - hidden
            surprises += bool(lost)
            told = (
                f"{shape}: {first}: {len(between)} pairs, {plain.total()} findings,"
                f" {hidden.total()} with cheats between, {lost.total()} hidden"
            )
            print(told, *map(str, lost), sep="\n    hidden: ", flush=True)  # noqa: T201  # a program
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
