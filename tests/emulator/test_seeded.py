from hypothesis import given
from hypothesis import strategies as st

from pubsub_emulator.emulator.seeded import MILLION, Stream
from pubsub_emulator.primitives.hashing import blake2_256


def test_ps90_the_first_bytes_of_a_stream_are_a_hash_of_seed_label_and_counter() -> None:
    expected = blake2_256(b"\x04s\x04l" + bytes(8)) + blake2_256(b"\x04s\x04l" + (1).to_bytes(8, "little"))
    assert Stream(b"s", "l").take(40) == expected[:40]


@given(st.lists(st.integers(0, 100), max_size=8))
def test_ps90_the_bytes_of_a_stream_do_not_depend_on_how_they_are_taken(pieces: list[int]) -> None:
    stream = Stream(b"seed", "label")
    assert b"".join(stream.take(piece) for piece in pieces) == Stream(b"seed", "label").take(sum(pieces))


@given(st.integers(0, 200), st.integers(0, 60), st.text(max_size=3))
def test_a_sample_has_distinct_ascending_members(population: int, count: int, label: str) -> None:
    count = min(count, population)
    drawn = Stream(b"", label).places(population, count)
    assert len(drawn) == count
    assert drawn == sorted(set(drawn))
    assert all(0 <= member < population for member in drawn)


def test_labels_and_seeds_keep_streams_apart() -> None:
    taken = [Stream(seed, label).take(8) for seed, label in ((b"a", "b"), (b"ab", ""), (b"", "ab"), (b"a", "c"))]
    assert len(set(taken)) == 4


def test_a_share_is_right_on_average() -> None:
    total = sum(Stream(b"x", str(i)).share(10, MILLION // 4) for i in range(1000))
    assert 2350 < total < 2650
