"""PS-81, PS-90: each strategy, alone and with others, meets the verdicts that it must meet; draws;
own strategies.
"""

from collections.abc import Iterator
from hashlib import blake2b

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.collator.cheats import SITUATIONS, found, names, situations
from support.plumbing.scenarios import scenario

from pubsub_emulator.collator import cheats
from pubsub_emulator.collator.cheats import (
    STRATEGIES,
    Situation,
    Strategy,
    StrategyTaken,
    attempt,
    authorities,
    carry_out,
    equivocates,
    expected,
    expected_of_proof,
    for_any_chain,
    propose,
    register_strategy,
)
from pubsub_emulator.collator.cheats.steps import (
    NUMBERS,
    Drop,
    Insert,
    Number,
    apply_to_proof,
    from_json,
    to_json,
)
from pubsub_emulator.collator.cheats.strategy import Proposal
from pubsub_emulator.collator.cheats.strategy import strategy as cheat
from pubsub_emulator.emulator.scenario.file import parse_scenario
from pubsub_emulator.emulator.scenario.model import CollatorSettings
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.laboratory.cases import JudgingContext
from pubsub_emulator.laboratory.worlds import World, fresh_state
from pubsub_emulator.primitives.draws import Draws, draw
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.header import turn_of
from pubsub_emulator.runtime.parachain.block import Candidate, Verdict


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


@pytest.mark.parametrize(
    "name", [name for name, strategy in for_any_chain().items() if strategy.on_proof]
)
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


def test_ps_90_a_strategy_depends_only_on_its_seed() -> None:
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
    """So that any part of a sequence is a sequence: each strategy's steps on the block of a foreign
    situation.
    """
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
        if (attempted := attempt(now, (STRATEGIES["equivocation"],), b"1")) is not None
        and not attempted.expected
    ]
    assert done
    for now, attempted in done:
        keys = authorities(now)
        assert (
            JudgingContext.of(now).judge(now.honest)
            == JudgingContext.of(now).judge(attempted.candidate)
            == ()
        )
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
    with pytest.raises(ValueError, match="only a proof"):
        attempt(situations(alone=True)[0], (STRATEGIES["add-junk"],), b"1")


def test_every_strategy_says_what_it_wants() -> None:
    assert len({strategy.gain for strategy in STRATEGIES.values()}) == len(STRATEGIES)
    for name, strategy in STRATEGIES.items():
        assert strategy.name == name
        assert strategy.propose.__doc__


def test_the_situations_are_not_all_of_one_kind() -> None:
    """A guard on the worlds themselves: what the rules speak of must occur, or nothing above means
    anything.
    """
    plans = [now.walked for now in (*situations(), *situations(alone=True))]
    publishers = [publisher for walked in plans for publisher in walked.publishers.values()]
    assert any(walked.cursor is not None for walked in plans)
    assert any(walked.cursor is None for walked in plans)
    assert any(publisher.unchanged for publisher in publishers)
    assert any(publisher.disabled for publisher in publishers)
    assert any(change.entry is None for walked in plans for change in walked.changes)
    assert len({now.spec.cache for now in situations()}) == 3
    assert any(now.messages.horizontal for now in situations())


def test_a_block_of_draws_is_the_hash_of_seed_label_and_count() -> None:
    draws = Draws(b"seed", "label")
    blocks = [blake2_256(b"\x10seed\x14label" + count.to_bytes(8, "little")) for count in range(3)]
    assert draws.take(5) + draws.take(0) + draws.take(91) == b"".join(blocks)


@given(seed=st.binary(max_size=8), bound=st.integers(1, 1 << 31), least=st.integers(0, 99))
def test_draws_keep_their_bounds(seed: bytes, bound: int, least: int) -> None:
    draws = Draws(seed, "bounds")
    assert all(0 <= draws.below(bound) < bound for _ in range(20))
    assert all(least <= draws.between(least, least + 3) <= least + 3 for _ in range(20))
    options = list(range(10))
    for count in range(12):
        sample = draws.sample(options, count)
        assert sample == sorted(set(sample))
        assert len(sample) == min(count, 10)
    assert draws.choice(options) in options


def test_all_numbers_below_a_bound_occur() -> None:
    draws = Draws(b"", "all")
    assert {draws.below(6) for _ in range(200)} == set(range(6))
    assert draws.below(0) == 0


@given(what=st.sampled_from(sorted(NUMBERS)), value=st.integers(-(1 << 70), 1 << 70))
def test_a_stated_number_always_fits_into_its_type(what: str, value: int) -> None:
    candidate = carry_out(situations()[0], (Number(what, value),))
    assert Candidate.decode(candidate.encode()) == candidate


def test_a_state_built_anew_is_the_same_state() -> None:
    world = World(b"anew", proofs_only=False)
    for _ in range(3):
        world.advance()
    state = world.situation().parent.state
    assert fresh_state(state).root() == state.root() == world.head.header.state_root
    assert list(fresh_state(state).top_entries()) == list(state.top_entries())


@given(st.lists(st.integers(0, 100), max_size=8))
def test_ps90_a_streams_bytes_do_not_depend_on_how_they_are_taken(pieces: list[int]) -> None:
    stream = Draws(b"seed", "label")
    assert b"".join(stream.take(piece) for piece in pieces) == Draws(b"seed", "label").take(
        sum(pieces)
    )


@given(st.integers(0, 200), st.integers(0, 60), st.text(max_size=3))
def test_a_sample_has_distinct_ascending_members(population: int, count: int, label: str) -> None:
    count = min(count, population)
    drawn = Draws(b"", label).places(population, count)
    assert len(drawn) == count
    assert drawn == sorted(set(drawn))
    assert all(0 <= member < population for member in drawn)


def test_a_draw_for_one_number_is_a_keyed_hash() -> None:
    assert draw(b"seed", b"late", 7) == int.from_bytes(
        blake2b(b"late" + bytes(7) + b"\x07", digest_size=4, key=b"seed").digest()
    )
    assert draw(bytes(99), b"", 0) == draw(bytes(64), b"", 0)


SCENARIO = scenario("own_cheats")


@cheat(
    "tests/omit-largest",
    "leave out what is largest",
    Verdict.OMITTED_BELOW_BUDGET,
    Verdict.ROOT_MISMATCH,
)
def omit_largest(situation: Situation, _draws: Draws) -> Proposal:
    taken = situation.walked.taken
    return (Drop(max(taken, key=lambda node_hash: (len(taken[node_hash]), node_hash))),)


@pytest.fixture
def registered() -> Iterator[Strategy]:
    register_strategy(omit_largest)
    yield omit_largest
    del cheats._KNOWN[omit_largest.name]


def test_a_scenario_names_a_registered_strategy_and_its_blocks_are_refused(
    registered: Strategy,
) -> None:
    simulation = Simulation(parse_scenario(SCENARIO, "own.toml"))
    refused = [record for _ in range(6) for record in simulation.step().refused]
    assert refused
    for record in refused:
        assert record.strategy == registered.name
        assert record.refusal is not None
        assert (record.refusal.verdict,) == record.due[:1]


def test_a_strategy_is_unknown_before_it_is_registered() -> None:
    with pytest.raises(PubsubError, match="omit-largest"):
        parse_scenario(SCENARIO, "own.toml")


@pytest.mark.usefixtures("registered")
def test_a_name_never_means_another_strategy() -> None:
    register_strategy(omit_largest)
    assert STRATEGIES[omit_largest.name] is omit_largest
    with pytest.raises(StrategyTaken, match="another strategy 'omit-node'"):
        register_strategy(
            Strategy("omit-node", "", (), on_proof=True, propose=omit_largest.propose)
        )
    assert CollatorSettings(strategies=(omit_largest.name,)).strategies == (omit_largest.name,)
