"""PS-90: draws depend on seed, label and count alone; worlds and steps keep within the types that they are made for."""

from hashlib import blake2b

from hypothesis import given
from hypothesis import strategies as st
from support.cheats import situations

from pubsub_emulator.collator.cheats import carry_out
from pubsub_emulator.collator.cheats.steps import NUMBERS, Number
from pubsub_emulator.collator.draws import Draws, draw
from pubsub_emulator.laboratory.worlds import World, fresh_state
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.runtime.parachain.block import Candidate


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
def test_ps90_the_bytes_of_a_stream_do_not_depend_on_how_they_are_taken(pieces: list[int]) -> None:
    stream = Draws(b"seed", "label")
    assert b"".join(stream.take(piece) for piece in pieces) == Draws(b"seed", "label").take(sum(pieces))


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
