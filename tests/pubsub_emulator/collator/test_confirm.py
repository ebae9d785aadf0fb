"""A block that its author built in the same process is executed once, if nothing differs; a cheat
is always judged, and refused.
"""

from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.collator.cheats import situations
from support.plumbing.examples import scaled

from pubsub_emulator.collator.author import Authored, CannotAuthor, author
from pubsub_emulator.collator.cheats import STRATEGIES, Situation, attempt, for_any_chain
from pubsub_emulator.collator.confirm import confirmed
from pubsub_emulator.emulator.network import round as network_round
from pubsub_emulator.emulator.network.records import BlockRecord, Observer
from pubsub_emulator.laboratory.worlds import World
from pubsub_emulator.primitives.header import turn_of
from pubsub_emulator.primitives.types import Hash, Slot
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_subscriber.handler import HANDLERS, Observe
from pubsub_emulator.runtime.parachain.block import Candidate, ChainHead
from pubsub_emulator.runtime.parachain.execute import BlockOutcome
from pubsub_emulator.runtime.parachain.validate import Judged, RelayContext, judge_block
from pubsub_emulator.spark_audit.simulate.population import Population


def made_by(now: Situation) -> Authored:
    seed = turn_of(now.slot, now.seeds)
    return author(now.parent, now.relay, now.messages, now.slot, seed, extrinsics=now.extrinsics)


def facts(outcome: BlockOutcome) -> dict[str, Any]:
    """All of an outcome that has a value, the walk included."""
    plan = outcome.plan
    own_state = plan.own_state
    assert own_state is not None
    found: dict[str, Any] = {
        name: getattr(outcome, name) for name in outcome.__slots__ if name not in {"state", "plan"}
    }
    found |= {
        name: getattr(plan, name)
        for name in plan.__slots__
        if name not in {"own_state", "publishers", "taken"}
    }
    found["taken"] = list(plan.taken.items())
    found["own rows"] = (own_state.total, own_state.without_cache, [*own_state.keys()])
    found["publishers"] = [
        {name: getattr(each, name) for name in each.__slots__ if name != "cache"}
        for each in plan.publishers.values()
    ]
    found["entries"] = list(outcome.state.top_entries())
    return found


@settings(max_examples=scaled(30))
@given(seed=st.binary(min_size=8, max_size=8))
def test_a_confirmed_outcome_is_that_of_judging_the_block(seed: bytes) -> None:
    world = World(seed, proofs_only=False)
    for _ in range(3):
        now = world.situation()
        try:
            made = made_by(now)
        except CannotAuthor:
            break
        context = now.context(now.relay.number)
        root = now.parent.state.root()
        outcome = confirmed(now.parent, made.candidate, context, made)
        judged, _ = judge_block(now.parent, made.candidate, context)
        assert outcome is made.outcome
        assert judged is not None
        assert facts(outcome) == facts(judged)
        assert now.parent.state.root() == root
        world.advance()


@pytest.mark.parametrize("name", for_any_chain())
def test_no_cheat_is_confirmed_by_the_honest_block(name: str) -> None:
    """Neither the cheat's bytes nor an honest block that claims to have them."""
    tried = 0
    for number, now in enumerate(situations()):
        attempted = attempt(now, (STRATEGIES[name],), b"%d" % number)
        if attempted is None or attempted.candidate == now.honest:
            continue
        tried += 1
        made = made_by(now)
        context = now.context(attempted.candidate.inherent.relay_parent_number)
        assert confirmed(now.parent, attempted.candidate, context, made) is None
        _, refusal = judge_block(now.parent, attempted.candidate, context)
        assert (refusal is not None) == bool(attempted.expected)
    assert tried or not STRATEGIES[name].meets


def honest() -> tuple[Situation, Authored]:
    now = next(
        now
        for now in situations()
        if now.honest.inherent.messages.downward and now.parent.header.aura_slot() is not None
    )
    return now, made_by(now)


def test_an_honest_block_is_confirmed() -> None:
    now, made = honest()
    context = now.context(now.relay.number)
    assert confirmed(now.parent, made.candidate, context, made) is made.outcome
    again = Candidate.decode(made.candidate.encode())
    assert confirmed(now.parent, again, context, made) is made.outcome


@pytest.mark.parametrize(
    "root",
    [
        None,
        Hash(bytes(32)),
    ],
    ids=["an unknown relay block", "another root"],
)
def test_a_block_on_another_relay_state_is_judged(root: Hash | None) -> None:
    now, made = honest()
    context = RelayContext(now.relay.number, root, now.slot_now)
    assert confirmed(now.parent, made.candidate, context, made) is None


def test_a_block_of_a_future_slot_is_judged() -> None:
    now, made = honest()
    context = replace(now.context(now.relay.number), slot_now=Slot(now.slot - 1))
    assert confirmed(now.parent, made.candidate, context, made) is None


def test_a_block_of_somebody_else_is_judged() -> None:
    now, _ = honest()
    made = author(now.parent, now.relay, now.messages, now.slot, now.stranger)
    assert confirmed(now.parent, made.candidate, now.context(now.relay.number), made) is None


def test_a_block_on_another_parent_is_judged() -> None:
    """Another header, and the same header over a state that was written to."""
    now, made = honest()
    context = now.context(now.relay.number)
    header = replace(now.parent.header, number=now.parent.header.number + 1)
    other = ChainHead(header, now.parent.state, now.parent.rules)
    assert confirmed(other, made.candidate, context, made) is None
    storage = Storage(now.parent.state.fork())
    storage.put(b"a row", b"of nobody")
    storage.commit()
    changed = ChainHead(now.parent.header, storage.state, now.parent.rules)
    assert confirmed(changed, made.candidate, context, made) is None


def test_a_block_whose_proof_is_not_what_its_author_read_is_judged() -> None:
    now, made = honest()
    context = now.context(now.relay.number)
    made.outcome.plan.taken.popitem()
    assert confirmed(now.parent, made.candidate, context, made) is None


def test_a_block_that_claims_another_state_than_its_author_saw_is_judged() -> None:
    now, made = honest()
    context = now.context(now.relay.number)
    outcome = replace(made.outcome, state_root=Hash(bytes(32)))
    claim = replace(made, outcome=outcome)
    assert confirmed(now.parent, made.candidate, context, claim) is None


class Other(Observe):
    """A handler that is not this package's own."""


def test_a_block_of_a_foreign_handler_is_judged() -> None:
    now, made = honest()
    context = now.context(now.relay.number)
    foreign = MappingProxyType({**HANDLERS, now.spec.handler: Other()})
    assert confirmed(now.parent, made.candidate, context, made, foreign) is None


class Seen(Observer):
    """The records of all candidates."""

    def __init__(self) -> None:
        self.records: list[BlockRecord] = []

    def candidate(self, record: BlockRecord) -> None:
        self.records.append(record)


def test_a_network_judges_every_cheat_and_no_honest_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which of its two ways a block takes cannot be seen in the record."""
    judged: list[Candidate] = []

    def noted(parent: ChainHead, candidate: Candidate, relay: RelayContext) -> Judged:
        judged.append(candidate)
        return judge_block(parent, candidate, relay)

    def watched() -> list[BlockRecord]:
        population = Population("confirm", 0, 500_000)
        network = population.network()
        seen = Seen()
        network.observe(seen)
        for _ in range(30):
            population.feed(network)
            network.step()
        return seen.records

    monkeypatch.setattr(network_round, "judge_block", noted)
    records = watched()
    unjudged = [each for each in records if all(each.candidate is not one for one in judged)]
    refused = [each for each in records if each.refusal is not None]
    assert refused
    assert unjudged
    assert all(each.strategy is None and not each.due for each in unjudged)
    assert all(any(each.candidate is one for one in judged) for each in refused)
    assert all(each.due for each in refused)

    monkeypatch.setattr(network_round, "confirmed", lambda *_: None)
    again = watched()
    assert [each.candidate for each in again] == [each.candidate for each in records]
    for one, other in zip(records, again, strict=True):
        assert (one.outcome is None) == (other.outcome is None)
        if one.outcome is not None and other.outcome is not None:
            assert facts(one.outcome) == facts(other.outcome)
