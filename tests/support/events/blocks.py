"""Blocks and rows for tests of events."""

from collections.abc import Mapping, Sequence

from hypothesis import strategies as st

from interchain_events.events.filters.algebra import (
    ANY,
    OPS,
    All,
    Chain,
    Field,
    Filter,
    Kind,
    Not,
    OneOf,
)
from interchain_events.events.rows import Block, ChainBlock, assemble
from interchain_events.events.values import Value
from pubsub_emulator.primitives.hashing import blake2_256

GENESIS = bytes(32)


def block_hash(number: int, branch: int = 0) -> bytes:
    """Return the hash of a made-up block."""
    return bytes(blake2_256(f"{number}/{branch}".encode()))


def make_block(
    number: int,
    events: Sequence[tuple[str, Mapping[str, object]]] = (),
    included: Sequence[ChainBlock] = (),
    *,
    branch: int = 0,
    parent: bytes | None = None,
) -> Block:
    """Return a leading block on the previous block, of the same branch unless `parent` is given."""
    leading = ChainBlock(None, number, block_hash(number, branch), number * 6_000, events)
    return assemble(
        leading, included, parent=block_hash(number - 1, branch) if parent is None else parent
    )


def counted(number: int, events: int, kind: str = "Test.Counted") -> Block:
    """Return a block of numbered events."""
    return make_block(number, [(kind, {"n": number * 1_000 + at}) for at in range(events)])


NAMES = st.sampled_from(["a", "b", "who", "amount", "x_1", "0"])
TEXTS = st.one_of(
    st.sampled_from(["", "a", "ab", "0xab", "A", "ä", "\U0001f600", "a\u0301", '"', "\\", "\x01"]),
    st.text(max_size=5),
).filter(lambda text: "\x00" not in text and not any("\ud800" <= each <= "\udfff" for each in text))
EDGES = [2**53, 2**62, 2**63, 2**64, 2**128, 10**19, 10**20]
INTEGERS = st.one_of(
    st.integers(-3, 3),
    st.sampled_from(
        [sign * (edge + off) for edge in EDGES for off in (-1, 0, 1) for sign in (1, -1)]
    ),
    st.integers(-(2**130), 2**130),
)
SCALARS: st.SearchStrategy[Value] = st.one_of(st.none(), st.booleans(), INTEGERS, TEXTS)
VALUES: st.SearchStrategy[Value] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=6,
)
FIELDS = st.dictionaries(NAMES, VALUES, max_size=4)
KINDS = st.sampled_from(["A.One", "A.Two", "Ab.One", "A_.One", "B.One"])
CHAINS = st.sampled_from([None, 0, 1000, 2000])

PATHS = st.lists(st.one_of(NAMES, st.integers(0, 3)), min_size=1, max_size=3).map(tuple)


def _field(op: str) -> st.SearchStrategy[Field]:
    if op == "in":
        return st.builds(Field, PATHS, st.just(op), st.lists(SCALARS, max_size=4))
    if op == "prefix":
        return st.builds(Field, PATHS, st.just(op), TEXTS)
    return st.builds(
        Field, PATHS, st.just(op), SCALARS if op in {"=", "!="} else st.one_of(INTEGERS, TEXTS)
    )


LEAVES: st.SearchStrategy[Filter] = st.one_of(
    st.just(ANY),
    CHAINS.map(Chain),
    st.sampled_from(["A.One", "A.*", "Ab.*", "A_.*"]).map(Kind),
    st.sampled_from(OPS).flatmap(_field),
)
FILTERS: st.SearchStrategy[Filter] = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        inner.map(Not),
        st.lists(inner, max_size=3).map(lambda parts: All(*parts)),
        st.lists(inner, max_size=3).map(lambda parts: OneOf(*parts)),
    ),
    max_leaves=5,
)
