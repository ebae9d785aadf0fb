"""PS-20 to PS-23: what a message weighs before it runs, who is let through with what, what a queue
gets for it.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.xcm.messages import (
    ID,
    ORIGIN,
    PARA,
    PER_BYTE,
    PER_PUBLISH,
    PUBLISHES,
    UNIT,
    WEIGHER,
    WEIGHTS,
    Ledger,
    failed,
    instructions,
    messages,
    publish,
    run,
    shown,
)

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.types import U64_MAX, ParaId
from pubsub_emulator.primitives.weights import WEIGHT_MAX, WEIGHT_ZERO, Weight
from pubsub_emulator.xcm.barriers import (
    AllowPublishFrom,
    AllowUnpaidExecutionFrom,
    AnyOf,
    Barrier,
    Properties,
    everything,
    only,
    only_parachains,
)
from pubsub_emulator.xcm.executor import Execution, XcmExecutor
from pubsub_emulator.xcm.instructions import (
    ClearOrigin,
    DescendOrigin,
    ExecuteWithOrigin,
    Instruction,
    Publish,
    SetAppendix,
    SetErrorHandler,
    SetTopic,
    UnpaidExecution,
    Xcm,
)
from pubsub_emulator.xcm.location import (
    HERE,
    PARENT,
    AccountId32,
    Location,
    NetworkId,
    OnlyChild,
    Parachain,
    parachain,
    sibling,
)
from pubsub_emulator.xcm.message import encode
from pubsub_emulator.xcm.outcome import (
    BadFormat,
    ProcessMessageError,
    StackLimitReached,
    Unsupported,
    XcmErrorKind,
)
from pubsub_emulator.xcm.response import Unlimited
from pubsub_emulator.xcm.weigher import FixedWeightBounds, WeighedMessage, XcmWeights, weigh_message

TOPIC = SetTopic(b"\x70" * 32)
STRICT = AllowPublishFrom(only_parachains, max_instructions=4)
LENIENT = AllowPublishFrom(only_parachains, max_instructions=4, tolerate_set_topic=True)


def ask(barrier: Barrier, message: Xcm, origin: Location = ORIGIN) -> ProcessMessageError | None:
    return barrier.should_execute(origin, message, WEIGHT_ZERO, Properties(ID))


P = publish()
TABLE: list[tuple[str, Xcm, ProcessMessageError | None, ProcessMessageError | None]] = [
    # what, message, without and with a tolerated topic
    ("one", (P,), None, None),
    ("the most", (P,) * 4, None, None),
    ("one too many", (P,) * 5, StackLimitReached(), StackLimitReached()),
    ("empty", (), BadFormat(), BadFormat()),
    ("a topic at the end", (P, TOPIC), BadFormat(), None),
    ("the most and a topic", (P, P, P, P, TOPIC), StackLimitReached(), None),
    ("one too many and a topic", (P,) * 5 + (TOPIC,), StackLimitReached(), StackLimitReached()),
    ("a topic alone", (TOPIC,), BadFormat(), BadFormat()),
    ("a topic in front", (TOPIC, P), BadFormat(), BadFormat()),
    ("two topics", (P, TOPIC, TOPIC), BadFormat(), BadFormat()),
    ("something before", (ClearOrigin(), P), BadFormat(), BadFormat()),
    ("something after", (P, ClearOrigin()), BadFormat(), BadFormat()),
    ("something between", (P, DescendOrigin(()), P), BadFormat(), BadFormat()),
    ("unpaid execution first", (UnpaidExecution(Unlimited(), None), P), BadFormat(), BadFormat()),
    ("a publish inside an appendix", (SetAppendix((P,)),), BadFormat(), BadFormat()),
    ("no publish", (ClearOrigin(),), BadFormat(), BadFormat()),
    ("mixed and too many", (P, ClearOrigin(), P, P, P), StackLimitReached(), StackLimitReached()),
]


@pytest.mark.parametrize(
    ("what", "message", "strict", "lenient"), TABLE, ids=[row[0] for row in TABLE]
)
def test_allow_publish_from_lets_only_publishes_through(
    what: str, message: Xcm, strict: ProcessMessageError | None, lenient: ProcessMessageError | None
) -> None:
    """C12, C13, C14, C15, C16, C17, C18, defect 38, PS-22: a topic is a matter of configuration,
    not of a wrapper.
    """
    del what
    assert ask(STRICT, message) == strict
    assert ask(LENIENT, message) == lenient


ACCOUNT = AccountId32(None, bytes(32))
ELSEWHERE = [
    HERE,
    PARENT,
    sibling(PARA),
    *(Location(up, (Parachain(PARA), ACCOUNT)) for up in (0, 1)),
]


@pytest.mark.parametrize("origin", ELSEWHERE, ids=shown)
@pytest.mark.parametrize(
    "message",
    [
        (P,),
        (),
        (P,) * 9,
        (ClearOrigin(),),
    ],
    ids=len,
)
def test_an_origin_that_is_not_named_is_unsupported_whatever_it_sends(
    origin: Location, message: Xcm
) -> None:
    """PS-22: checked before the form, so that strangers cost least."""
    assert ask(STRICT, message, origin) == Unsupported()


TOPICS = st.builds(SetTopic, st.binary(min_size=32, max_size=32))


# A drawn message is hardly ever one that passes, so some are made of publishes, a topic and at most
# one more.
@given(
    st.one_of(
        messages(),
        st.builds(
            lambda publishes, end: (*publishes, *end),
            st.lists(PUBLISHES, max_size=5),
            st.one_of(
                st.just(()), st.tuples(TOPICS), st.tuples(TOPICS, TOPICS), st.tuples(instructions())
            ),
        ),
    )
)
def test_nothing_but_publishes_and_a_tolerated_topic_passes(message: Xcm) -> None:
    """PS-22: over messages of every instruction."""

    def is_good(body: Xcm) -> bool:
        return 1 <= len(body) <= 4 and all(type(instruction) is Publish for instruction in body)

    assert (ask(STRICT, message) is None) == is_good(message)
    has_topic = bool(message) and type(message[-1]) is SetTopic
    assert (ask(LENIENT, message) is None) == is_good(message[:-1] if has_topic else message)


@pytest.mark.parametrize("topics", range(3))
@pytest.mark.parametrize("count", range(7))
def test_one_to_max_publishes_pass_with_a_topic_that_is_not_counted(
    count: int, topics: int
) -> None:
    message = (P,) * count + (TOPIC,) * topics
    assert (ask(STRICT, message) is None) == (1 <= count <= 4 and topics == 0)
    assert (ask(LENIENT, message) is None) == (1 <= count <= 4 and topics <= 1)


@given(st.integers(0, 6), st.integers(0, 6))
def test_one_to_max_publishes_pass(limit: int, count: int) -> None:
    """Defect 40, PS-22: 1..max, also where max is 0."""
    passed = ask(AllowPublishFrom(everything, limit), (P,) * count) is None
    assert passed == (1 <= count <= limit)


def test_a_tolerated_topic_becomes_the_message_id() -> None:
    """PS-22: as `TrailingSetTopicAsId` does; a refused message keeps its id."""
    properties = Properties(ID)
    assert LENIENT.should_execute(ORIGIN, (P, TOPIC), WEIGHT_ZERO, properties) is None
    assert properties.message_id == TOPIC.inner
    properties = Properties(ID)
    assert (
        LENIENT.should_execute(ORIGIN, (ClearOrigin(), TOPIC), WEIGHT_ZERO, properties)
        == BadFormat()
    )
    assert properties.message_id == ID


def test_filters_name_exact_locations() -> None:
    """C8, C9, C10, C11, C19, C20, PS-22: everything, any parachain whether registered or not, these
    parachains.

    The name of C19 says reject, its assertion lets `Parent` pass the widest filter; so it does
    here.
    """
    named = only(ParaId(1000), ParaId(1001))
    assert [named(parachain(ParaId(para))) for para in (999, 1000, 1001, 1002)] == [
        False,
        True,
        True,
        False,
    ]
    assert all(only_parachains(parachain(ParaId(para))) for para in (1000, 1999, 2000, 5000))
    assert not any(map(named, ELSEWHERE))
    assert not any(map(only_parachains, ELSEWHERE))
    assert all(map(everything, ELSEWHERE))
    assert not only_parachains(Location(0, (OnlyChild(),)))


def test_unpaid_execution_is_allowed_from_the_origins_named() -> None:
    """PS-22: whatever the message."""
    barrier = AllowUnpaidExecutionFrom(only(PARA))
    message: tuple[Instruction, ...] = (ClearOrigin(), P)
    assert ask(barrier, message) is None
    assert ask(barrier, message, HERE) == Unsupported()


def test_any_of_several_barriers_lets_through() -> None:
    """PS-22: in turn; when none does, it is `Unsupported`, as a Rust tuple of barriers has it."""
    either = AnyOf(STRICT, AllowUnpaidExecutionFrom(only(ParaId(7))))
    assert ask(either, (P,)) is None
    assert ask(either, (ClearOrigin(),), parachain(ParaId(7))) is None
    assert ask(either, (ClearOrigin(),)) == Unsupported()
    assert ask(AnyOf(), (P,)) == Unsupported()


def test_the_first_barrier_that_passes_settles_the_message_id() -> None:
    """PS-22: later ones are not asked."""
    properties = Properties(ID)
    barrier = AnyOf(AllowUnpaidExecutionFrom(everything), LENIENT)
    assert barrier.should_execute(ORIGIN, (P, TOPIC), WEIGHT_MAX, properties) is None
    assert properties.message_id == ID


@given(st.lists(PUBLISHES, max_size=20))
def test_a_publish_weighs_the_unit_its_own_share_and_its_bytes(message: list[Publish]) -> None:
    """PS-21: in both dimensions; ttl and key do not matter."""
    size = sum(len(instruction.value) for instruction in message)
    expected = (UNIT + PER_PUBLISH) * len(message) + PER_BYTE * size
    assert WEIGHER.weight(message) == expected


def test_a_publish_of_its_own_time_takes_it_beside_the_unit() -> None:
    """PS-21: at the top level and within a handler, which are weighed by different code."""
    unit, own, byte = Weight(1000, 200), Weight(30, 4), Weight(5, 6)
    weigher = FixedWeightBounds(XcmWeights(unit, own, byte))
    instruction = publish()
    whole = unit + own + byte * len(instruction.value)
    assert weigher.weight((instruction,)) == whole
    assert weigher.weight((SetAppendix((instruction,)),)) == unit + whole


@pytest.mark.parametrize(
    "wrap",
    [
        pytest.param(SetErrorHandler, id="SetErrorHandler"),
        pytest.param(SetAppendix, id="SetAppendix"),
        pytest.param(lambda xcm: ExecuteWithOrigin(None, xcm), id="ExecuteWithOrigin"),
    ],
)
def test_what_may_run_here_is_weighed(wrap: type[SetAppendix]) -> None:
    """PS-21: a publish hidden in a handler is paid for before it can run."""
    hidden = UNIT + PER_PUBLISH + PER_BYTE * 5
    assert WEIGHER.weight((wrap((publish(), publish())),)) == UNIT + hidden * 2
    assert WEIGHER.weight((wrap((wrap((publish(),)),)),)) == UNIT * 2 + hidden


def test_messages_for_elsewhere_are_data() -> None:
    """PS-21: an exported message runs on another chain."""
    assert (
        WEIGHER.weight((Instruction.VARIANTS[38](NetworkId.VARIANTS[2](), (), (publish(),) * 9),))
        == UNIT
    )


def test_too_many_instructions_are_named_by_the_first_that_is_too_many() -> None:
    """PS-21: inner ones count; the index is the top-level instruction's."""
    weigher = FixedWeightBounds(WEIGHTS, max_instructions=3)
    assert weigher.weight((ClearOrigin(),) * 3) == UNIT * 3
    assert weigher.weight((ClearOrigin(),) * 5) == failed(3, XcmErrorKind.ExceedsStackLimit)
    nested: tuple[Instruction, ...] = (ClearOrigin(), SetAppendix((ClearOrigin(),) * 2))
    assert weigher.weight(nested) == failed(1, XcmErrorKind.ExceedsStackLimit)
    assert weigher.weight((ClearOrigin(), SetAppendix((ClearOrigin(),)))) == UNIT * 3
    assert weigher.weight((SetAppendix(()), SetErrorHandler(()), SetAppendix(()))) == UNIT * 3
    assert FixedWeightBounds(WEIGHTS, 0).weight(()) == WEIGHT_ZERO


def test_a_message_that_contains_itself_many_times_is_not_walked_fully() -> None:
    """PS-21: 2 to the 40th instructions out of 40 objects stop at the limit."""
    message: tuple[Instruction, ...] = (ClearOrigin(),)
    for _ in range(40):
        message = (SetAppendix(message), SetAppendix(message))
    assert WEIGHER.weight(message) == failed(0, XcmErrorKind.ExceedsStackLimit)


def test_a_weight_beyond_u64_is_not_computable() -> None:
    """PS-21: it must not wrap into something small."""
    weigher = FixedWeightBounds(XcmWeights(Weight(U64_MAX, 0)))
    assert weigher.weight((ClearOrigin(),)) == Weight(U64_MAX, 0)
    assert weigher.weight((ClearOrigin(),) * 2) == failed(1, XcmErrorKind.Overflow)
    proof = FixedWeightBounds(XcmWeights(Weight(0, U64_MAX)))
    assert proof.weight((ClearOrigin(),) * 2) == failed(1, XcmErrorKind.Overflow)


def test_giving_back_saturates() -> None:
    """PS-21: one instruction's weight is what was charged for it, and never more than u64."""
    weigher = FixedWeightBounds(XcmWeights(Weight(U64_MAX, 1)))
    assert weigher.instr_weight(SetAppendix((ClearOrigin(),))) == Weight(U64_MAX, 2)
    assert WEIGHER.instr_weight(publish()) == WEIGHER.weight((publish(),))


ONE = UNIT + PER_PUBLISH + PER_BYTE * 5


def test_the_weight_is_known_before_the_barrier_is_asked() -> None:
    """Defect 38, PS-21, PS-23: the queue compares it with its limit; the barrier sees what may run,
    and its weight.
    """
    asked = []

    class Asked:
        def should_execute(self, *arguments: object) -> None:
            asked.append(arguments)

    data = encode((publish(),))
    weighed = weigh_message(WEIGHER, data)
    assert weighed == WeighedMessage((publish(),), ONE)
    assert not asked
    assert isinstance(run(XcmExecutor(WEIGHER, Asked()), data, Ledger()), Execution)
    assert asked == [(ORIGIN, (publish(),), ONE, Properties(blake2_256(data)))]


def test_more_instructions_than_are_weighed_reach_the_stack_limit() -> None:
    """PS-22: before any barrier."""
    data = encode((publish(),) * 3)
    assert weigh_message(FixedWeightBounds(WEIGHTS, 2), data) == StackLimitReached()


def test_a_weight_beyond_u64_is_unsupported() -> None:
    """PS-21: such a message will never fit."""
    heavy = FixedWeightBounds(XcmWeights(Weight(U64_MAX, 0)))
    assert weigh_message(heavy, encode((publish(),) * 2)) == Unsupported()


@given(st.binary(max_size=200), st.booleans())
def test_no_bytes_make_weighing_or_executing_raise(data: bytes, versioned: bool) -> None:
    """PS-20: a parachain chooses its upward messages freely."""
    prefix = b"\x05\x04" if versioned else b""
    result = run(
        XcmExecutor(WEIGHER, AllowUnpaidExecutionFrom(everything)), prefix + data, Ledger()
    )
    assert isinstance(result, Execution | ProcessMessageError)
