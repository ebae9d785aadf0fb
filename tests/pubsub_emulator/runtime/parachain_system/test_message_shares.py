"""UP-8 to UP-10, UP-16: which messages a block has in full, by the shipped rules and by others."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.runtime.world import ME

from pubsub_emulator.collator.author import (
    CannotAuthor,
    RelayBlock,
    ensure_advance,
    ensure_room,
    full_proof,
)
from pubsub_emulator.primitives import storage_keys
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.types import ParaId, RelayBlockNumber
from pubsub_emulator.runtime.framework.abridged import InboundMessageId as Mark
from pubsub_emulator.runtime.framework.abridged import (
    Marks,
    Progress,
    Shares,
    abridged,
    advancement_faults,
    full_bytes,
    new_messages,
    order_faults,
    progress,
    share_faults,
)
from pubsub_emulator.runtime.framework.message_chains import (
    InboundDownwardMessage,
    InboundHrmpMessage,
    InboundMessages,
)
from pubsub_emulator.runtime.framework.static_keys import StaticValues
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.pallet_subscriber.config import RuntimeSpec
from pubsub_emulator.runtime.relay.host_configuration import (
    HostConfiguration,
    host_configuration,
)
from pubsub_emulator.runtime.rules import SHIPPED, Rules, make_rules

SAMPLES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[3] / "vectors" / "relay_state" / "active_config.json").read_text()
)
LARGEST = 40
"""The size of the largest message of either kind."""
_sizes = st.lists(st.tuples(st.integers(1, 6), st.integers(0, LARGEST)), max_size=8)
MAY_HASH = make_rules(
    "mine.py",
    b"\1" * 32,
    {"may_hash": lambda full, largest, limit: full + largest > limit},
)
"""The advanced rule for downward messages."""


def number(at: int) -> RelayBlockNumber:
    return RelayBlockNumber(at)


def waiting(downward: list[tuple[int, int]], sent: list[list[tuple[int, int]]]) -> InboundMessages:
    """Messages of these sizes, each with its relay block and other bytes than all others."""
    across = []
    for sender, sizes in enumerate(sent, start=2000):
        messages = tuple(
            InboundHrmpMessage(number(at), bytes([place]) * size)
            for place, (at, size) in enumerate(sorted(sizes))
        )
        across.append((ParaId(sender), messages))
    down = tuple(
        InboundDownwardMessage(number(at), bytes([place]) * size)
        for place, (at, size) in enumerate(sorted(downward))
    )
    return InboundMessages(down, tuple(across)).tidy()


def shares(rules: Rules, limit: int) -> Shares:
    """The shares of a chain whose sixth is `limit`."""
    return Shares(limit, None, rules.may_hash)


messages_of = st.builds(waiting, _sizes, st.lists(_sizes, max_size=3))
LARGEST_OF = {ParaId(2000 + at): LARGEST for at in range(3)}


@given(messages=messages_of, limit=st.integers(LARGEST, 200), advanced=st.booleans())
def test_an_honest_split_breaks_no_rule(
    messages: InboundMessages, limit: int, *, advanced: bool
) -> None:
    """UP-9, UP-10: with the advanced rule for downward messages, too, if none is too long."""
    share = shares(MAY_HASH if advanced else SHIPPED, limit)
    split = abridged(messages, share)
    faults = [
        *share_faults(split, share),
        *order_faults(split),
        *advancement_faults(split, share, LARGEST_OF, LARGEST),
    ]
    assert faults == []
    assert abridged(split, share) == split


@given(messages=messages_of, limit=st.integers(LARGEST, 120))
def test_blocks_take_every_message_once_and_in_order(messages: InboundMessages, limit: int) -> None:
    """UP-8, UP-16: `reverse_idx` names the last full message, so that hashed ones come again."""
    stood = Progress(Marks(Mark(number(0), 0), Mark(number(0), 0)), number(0))
    downward: list[InboundDownwardMessage] = []
    across: list[tuple[ParaId, InboundHrmpMessage]] = []
    for _ in range(40):
        block = abridged(new_messages(messages, stood.marks), Shares(limit))
        downward += block.downward
        for sender, sent in block.horizontal:
            across += [(sender, each) for each in sent]
        stood = progress(block, stood, number(7))
    assert downward == list(messages.downward)
    for sender, sent in messages.horizontal:
        assert [each for whose, each in across if whose == sender] == list(sent)
    assert len(across) == sum(len(sent) for _, sent in messages.horizontal)


@given(messages=messages_of, limit=st.integers(LARGEST, 200), kept=st.integers(1, 8))
def test_the_advanced_rule_refuses_only_splits_with_room_for_the_largest_message(
    messages: InboundMessages, limit: int, kept: int
) -> None:
    held = abridged(messages, Shares(sum(len(each.msg) for each in messages.downward[:kept])))
    faults = list(advancement_faults(held, shares(MAY_HASH, limit), LARGEST_OF, LARGEST))
    taken, _ = full_bytes(held)
    refused = bool(held.hashed_downward) and (not held.downward or taken + LARGEST <= limit)
    assert any("downward" in fault for fault in faults) is refused
    basic = list(advancement_faults(held, Shares(limit), LARGEST_OF, LARGEST))
    assert any("downward" in fault for fault in basic) is bool(
        held.hashed_downward and not held.downward
    )


def test_the_largest_downward_message_is_read_from_real_configurations() -> None:
    """UP-16: those of today's layout; fields after the abridged part have moved before."""
    read = 0
    for sample in SAMPLES:
        raw = bytes.fromhex(sample["active_config"].removeprefix("0x"))
        try:
            config = host_configuration.decode(raw)
        except ScaleError:
            continue
        assert _statics(raw).largest_downward == config.max_downward_message_size == 51_200
        read += 1
    assert read
    raw = host_configuration.encode(HostConfiguration(max_downward_message_size=77))
    assert _statics(raw).largest_downward == 77


@pytest.mark.parametrize("length", [0, 47, 51])
def test_the_rule_is_not_applied_if_the_configuration_is_cut(length: int) -> None:
    """UP-10: the relay root commits to it, so the collator is not at fault."""
    statics = _statics(bytes(length))
    assert statics.largest_downward is None
    held = abridged(waiting([(1, 10), (1, 10)], []), Shares(10))
    assert list(advancement_faults(held, shares(MAY_HASH, 100), {}, None)) == []


def _statics(config: bytes) -> StaticValues:
    """The static values of a relay block with this configuration."""
    storage = Storage(State())
    storage.put(storage_keys.ACTIVE_CONFIG, config)
    storage.commit()
    return full_proof(RelayBlock(number(1), storage.state), RuntimeSpec(ME, {})).statics


def test_an_honest_author_does_not_build_against_the_rules() -> None:
    """UP-16: a message longer than the configured one does not fit, and the rule wants it."""
    share = shares(MAY_HASH, 100)
    split = abridged(waiting([(1, 60), (2, 60)], []), share)
    statics = StaticValues(largest_downward=60)
    ensure_advance(split, share, statics)
    statics.largest_downward = 40
    with pytest.raises(CannotAuthor, match=r"hashed after 60 bytes, .* largest message has 40"):
        ensure_advance(split, share, statics)


ROOMS = {
    "message_limit": lambda max_pov, remaining: min(max_pov // 6, remaining),
    "horizontal_room": lambda _max_pov, remaining, downward: max(remaining - downward, 0),
}


def test_a_rule_decides_how_many_bytes_of_messages_a_block_takes() -> None:
    """UP-16: with `reserve_minimum`, half of what is left is each kind's, unless a rule says so."""
    spec = RuntimeSpec(ME, {}, max_pov_size=1_300_000, reserve_minimum=True)
    left = 1_300_000 * 85 // 100 - 1_048_576
    shipped = spec.shares(SHIPPED)
    assert (shipped.limit, shipped.horizontal(0)) == (left // 2, left // 2 * 2)
    assert shipped.horizontal(shipped.limit) == shipped.limit
    ruled = spec.shares(make_rules("mine.py", b"\2" * 32, ROOMS))
    assert (ruled.limit, ruled.horizontal(0), ruled.horizontal(left - 7)) == (left, left, 7)
    messages = waiting([(1, 200)], [[(1, 250)]])
    small = Shares(250, lambda downward: 250 - downward)
    split = abridged(messages, small)
    assert (full_bytes(split), split.hashed_count) == ((200, 0), 1)
    with pytest.raises(CannotAuthor, match="horizontal message exceeds the share of 50 bytes"):
        ensure_room(spec, split, small)
    assert [*share_faults(messages, small)] == [
        "250 bytes of horizontal messages exceed the 50 that are left for them"
    ]
