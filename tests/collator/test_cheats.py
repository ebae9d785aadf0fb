"""PS-81: every strategy, alone and with others, in many situations, meets exactly the verdicts that it must meet."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.cheats import SITUATIONS, found, names, situations

from pubsub_emulator.collator.cheats import (
    STRATEGIES,
    attempt,
    authorities,
    carry_out,
    equivocates,
    expected,
    expected_of_proof,
    for_any_chain,
    propose,
)
from pubsub_emulator.collator.cheats.steps import Insert, apply_to_proof, from_json, to_json
from pubsub_emulator.laboratory.cases import JudgingContext
from pubsub_emulator.primitives.header import turn_of


@pytest.mark.parametrize("name", for_any_chain())
def test_ps_81_a_strategy_meets_the_verdict_that_it_names(name: str) -> None:
    strategy, applied, refused = STRATEGIES[name], 0, 0
    for number, now in enumerate(situations()):
        if applied == 5:
            break
        attempted = attempt(now, (strategy,), b"%d" % number)
        if attempted is None:
            continue
        applied += 1
        assert found(now, attempted) == names(attempted.expected)
        if attempted.expected:
            refused += 1
            assert attempted.expected[0] in strategy.meets
        else:
            same_proof = attempted.candidate.inherent.proof == now.honest.inherent.proof
            assert same_proof or name == "equivocation"
    assert applied, f"{name} applies nowhere"
    assert bool(refused) == bool(strategy.meets), f"{name} is never refused, or always is"


@pytest.mark.parametrize("name", [name for name, strategy in for_any_chain().items() if strategy.on_proof])
def test_ps_52_a_proof_alone_meets_the_same_verdicts(name: str) -> None:
    strategy, applied = STRATEGIES[name], 0
    for number, now in enumerate(situations(alone=True)):
        _, steps = propose(now, (strategy,), b"%d" % number)
        if not steps:
            continue
        assert all(step.on_proof for step in steps)
        applied += 1
        proof = apply_to_proof(now.canonical, steps)
        due = expected_of_proof(now, proof)
        assert JudgingContext.of(now).judge_proof(now.view, proof) == names(due)
        assert due[:1] == () or due[0] in strategy.meets
    assert applied, f"{name} applies nowhere"


@given(
    picked=st.lists(st.sampled_from(sorted(for_any_chain())), min_size=2, max_size=4),
    seed=st.binary(min_size=1, max_size=4),
    at=st.integers(0, SITUATIONS - 1),
)
def test_ps_81_strategies_can_be_composed(picked: list[str], seed: bytes, at: int) -> None:
    now = situations()[at]
    attempted = attempt(now, tuple(STRATEGIES[name] for name in picked), seed)
    if attempted is not None:
        assert set(attempted.strategies) <= set(picked)
        assert found(now, attempted) == names(attempted.expected)


def test_ps_90_a_strategy_is_the_same_for_the_same_seed_and_another_for_another() -> None:
    now = situations()[3]
    chosen = (STRATEGIES["any-mutation"],)
    once, again, other = (propose(now, chosen, seed) for seed in (b"1", b"1", b"2"))
    assert once == again != other


@pytest.mark.parametrize("name", for_any_chain())
def test_steps_survive_being_written_down(name: str) -> None:
    for number, now in enumerate(situations()):
        _, steps = propose(now, (STRATEGIES[name],), b"%d" % number)
        assert tuple(from_json(to_json(step)) for step in steps) == steps


def test_a_step_that_finds_nothing_to_act_on_does_nothing() -> None:
    """So that any part of a sequence is a sequence: each strategy's steps on the block of a foreign situation."""
    strange = situations()[0]
    for number, strategy in enumerate(STRATEGIES.values()):
        now = situations()[number % SITUATIONS]
        _, steps = propose(now, (strategy,), b"x")
        candidate = carry_out(strange, steps)
        verdicts = JudgingContext.of(strange).judge(candidate)
        assert verdicts == names(expected(strange, candidate))


@given(st.integers(0, 2**64 - 1))
@example(2**64 - 1)
def test_a_node_is_inserted_at_any_index(at: int) -> None:
    assert apply_to_proof([b"a", b"b"], [Insert(at, b"x")]).index(b"x") == min(at, 2)


def test_an_omission_that_ends_in_the_canonical_set_is_no_cheat() -> None:
    now = situations()[1]
    attempted = attempt(now, (STRATEGIES["drop-and-restore"],), b"1")
    assert attempted is not None
    assert attempted.expected == ()
    assert attempted.candidate == now.honest


def test_ps_79_equivocation_is_two_valid_blocks_and_its_two_seals_name_the_author() -> None:
    done = [
        (now, attempted)
        for now in situations()
        if (attempted := attempt(now, (STRATEGIES["equivocation"],), b"1")) is not None and not attempted.expected
    ]
    assert done
    for now, attempted in done:
        keys = authorities(now)
        assert JudgingContext.of(now).judge(now.honest) == JudgingContext.of(now).judge(attempted.candidate) == ()
        author = turn_of(now.slot, keys)
        assert equivocates(now.honest, attempted.candidate, keys) == author
        assert equivocates(now.honest, now.honest, keys) is None


def test_ps_79_blocks_of_two_slots_or_with_another_seal_are_no_equivocation() -> None:
    now = situations()[2]
    keys = authorities(now)
    for name in ("stranger", "no-seal", "future-slot", "seal-of-another-header"):
        attempted = attempt(now, (STRATEGIES[name], STRATEGIES["wrong-state-root"]), b"1")
        assert attempted is not None
        assert equivocates(now.honest, attempted.candidate, keys) is None


def test_a_situation_judged_alone_has_no_block() -> None:
    with pytest.raises(ValueError, match="alone"):
        attempt(situations(alone=True)[0], (STRATEGIES["add-junk"],), b"1")


def test_every_strategy_says_what_it_wants() -> None:
    assert len({strategy.gain for strategy in STRATEGIES.values()}) == len(STRATEGIES)
    for name, strategy in STRATEGIES.items():
        assert strategy.name == name
        assert strategy.propose.__doc__


def test_the_situations_are_not_all_of_one_kind() -> None:
    """A guard on the worlds themselves: what the rules speak of must occur, or nothing above means anything."""
    plans = [now.walked for now in (*situations(), *situations(alone=True))]
    publishers = [publisher for walked in plans for publisher in walked.publishers.values()]
    assert any(walked.cursor is not None for walked in plans)
    assert any(walked.cursor is None for walked in plans)
    assert any(publisher.unchanged for publisher in publishers)
    assert any(publisher.disabled for publisher in publishers)
    assert any(change.entry is None for walked in plans for change in walked.changes)
    assert len({now.spec.cache for now in situations()}) == 3
    assert any(now.messages.horizontal for now in situations())
