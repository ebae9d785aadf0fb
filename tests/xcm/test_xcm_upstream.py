"""The rows C1 to C20 and the defects 37 to 41 that were found in the Rust attempt, each held against the rules here.

Where a row contradicts PS-20 to PS-22, the test shows what happens here and says why.
"""

import pytest
from support.xcm import ID, ORIGIN, PARA, WEIGHER, Ledger, execute, failed, key, publish, run

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.primitives.weights import WEIGHT_MAX, WEIGHT_ZERO, Weight
from pubsub_emulator.xcm.barriers import (
    AllowPublishFrom,
    Barrier,
    Filter,
    Properties,
    everything,
    only,
    only_parachains,
)
from pubsub_emulator.xcm.executor import Execution, XcmExecutor
from pubsub_emulator.xcm.instructions import ClearOrigin, Instruction, Publish, SetTopic, Trap, Xcm
from pubsub_emulator.xcm.location import HERE, PARENT, AccountId32, Location, Parachain, parachain, sibling
from pubsub_emulator.xcm.message import encode
from pubsub_emulator.xcm.outcome import (
    BadFormat,
    Complete,
    Incomplete,
    ProcessMessageError,
    StackLimitReached,
    Unsupported,
    XcmErrorKind,
)
from pubsub_emulator.xcm.weighed_message import WeighedMessage, weigh_message

P = publish()
TOPIC = SetTopic(b"\x70" * 32)
SIBLING_ACCOUNT = Location(1, (Parachain(2000), AccountId32(None, b"\x01" * 32)))


def ask(barrier: Barrier, message: Xcm, origin: Location = ORIGIN) -> ProcessMessageError | None:
    return barrier.should_execute(origin, message, WEIGHT_MAX, Properties(ID))


def allow(allowed: Filter = everything, limit: int = 16) -> AllowPublishFrom:
    return AllowPublishFrom(allowed, limit)


def bad_origin(*message: Instruction, origin: Location = ORIGIN) -> bool:
    """Whether the message's last instruction fails with `BadOrigin` and nothing was published."""
    chain = Ledger()
    outcome = execute(*message, origin=origin, config=chain).outcome
    assert isinstance(outcome, Incomplete)
    return outcome.error == failed(len(message) - 1, XcmErrorKind.BadOrigin) and not chain.stored


def test_c1_c4_c5_a_parachain_publishes_item_by_item() -> None:
    """C1, C4, C5, PS-20, PS-21: the batch instruction of C4 is gone; two pairs are two instructions, a call each."""
    chain = Ledger()
    assert isinstance(execute(P, publish(2), origin=parachain(PARA), config=chain).outcome, Complete)
    assert chain.stored == {(PARA, key(1)): (b"value", 0), (PARA, key(2)): (b"value", 0)}
    assert chain.layers == 2


@pytest.mark.parametrize("origin", [PARENT, SIBLING_ACCOUNT, HERE], ids=["c2", "c6", "c7"])
def test_c2_c6_c7_what_is_no_parachain_publishes_nothing(origin: Location) -> None:
    """C2, C6, C7, PS-21: rows C6 and C7 have `NoPermission`; here the origin register alone decides: `BadOrigin`."""
    assert not only_parachains(origin)
    assert bad_origin(P, origin=origin)


def test_c3_publish_without_origin_fails() -> None:
    """C3, PS-21: `ClearOrigin`, then `Publish`: index 1, `BadOrigin`."""
    assert bad_origin(ClearOrigin(), P)


def test_c8_only_parachains_filter_works() -> None:
    """C8, PS-22: only `(0, [Parachain(_)])` passes."""
    origins = [parachain(PARA), sibling(PARA), HERE, PARENT, SIBLING_ACCOUNT]
    assert [only_parachains(origin) for origin in origins] == [True, False, False, False, False]


@pytest.mark.parametrize("para", [1000, 1999, 2000, 5000])
def test_c9_c10_c11_allow_publish_from_allows_a_single_publish_of_system_and_other_parachains(para: int) -> None:
    """C9, C10, C11, PS-22: registration is the pallet's matter, not the barrier's."""
    assert ask(allow(only_parachains), (P,), parachain(ParaId(para))) is None


@pytest.mark.parametrize(
    ("message", "limit", "said"),
    [
        pytest.param((P,) * 3, 16, None, id="c12"),
        pytest.param((P,) * 4, 4, None, id="c13"),
        pytest.param((P,) * 5, 4, StackLimitReached(), id="c14"),
        pytest.param((), 16, BadFormat(), id="c15"),
        pytest.param((P, TOPIC), 16, BadFormat(), id="c16"),
        pytest.param((ClearOrigin(), P), 16, BadFormat(), id="c17"),
        pytest.param((ClearOrigin(),), 16, BadFormat(), id="c18"),
    ],
)
def test_c12_c13_c14_c15_c16_c17_c18_a_message_is_one_to_max_publishes(
    message: Xcm, limit: int, said: ProcessMessageError | None
) -> None:
    """C12 to C18, PS-22."""
    assert ask(allow(limit=limit), message) == said


def test_c19_rejects_non_parachain_origin() -> None:
    """C19, defect 38, PS-21, PS-22: the row's name says reject, its assertion lets `Parent` pass the widest filter.

    So does this barrier; yet `Publish` fails with `BadOrigin`. A filter of parachains refuses at once.
    """
    assert ask(allow(everything), (P,), PARENT) is None
    assert bad_origin(P, origin=PARENT)
    assert ask(allow(only_parachains), (P,), PARENT) == Unsupported()


def test_c20_filters_specific_parachains() -> None:
    """C20, PS-22: 1000 passes, 2000 is `Unsupported`."""
    barrier = allow(only(ParaId(1000)))
    assert ask(barrier, (P,), parachain(ParaId(1000))) is None
    assert ask(barrier, (P,), parachain(ParaId(2000))) == Unsupported()


def test_defect_38_the_weight_is_known_before_the_barrier_is_asked() -> None:
    """Defect 38, PS-21, PS-23: the queue compares it with its limit; the barrier sees what may run, and its weight."""
    asked = []

    class Asked:
        def should_execute(self, *arguments: object) -> None:
            asked.append(arguments)

    executor = XcmExecutor(WEIGHER, Asked())
    data = encode((P,))
    weight = WEIGHER.weight((P,))
    assert isinstance(weight, Weight)
    assert weigh_message(executor.weigher, data) == WeighedMessage((P,), weight)
    assert not asked
    assert isinstance(run(executor, data, Ledger()), Execution)
    assert asked == [(ORIGIN, (P,), weight, Properties(blake2_256(data)))]


def test_defect_38_a_trailing_topic_is_a_matter_of_configuration_and_not_of_a_wrapper() -> None:
    """Defect 38, PS-22: see also C16."""
    lenient = AllowPublishFrom(only_parachains, 1, tolerate_set_topic=True)
    assert ask(lenient, (P, TOPIC)) is None
    assert ask(allow(only_parachains, 1), (P, TOPIC)) == StackLimitReached()
    assert ask(allow(only_parachains, 2), (P, TOPIC)) == BadFormat()


@pytest.mark.parametrize(
    "origin",
    [SIBLING_ACCOUNT, sibling(ParaId(2000)), Location(0, (Parachain(2000), AccountId32(None, bytes(32))))],
    ids=str,
)
def test_defect_39_an_account_on_a_parachain_never_publishes_as_the_parachain(origin: Location) -> None:
    """Defect 39, PS-21: not behind the loosest filter either."""
    assert ask(allow(everything), (P,), origin) is None
    assert bad_origin(P, origin=origin)


def test_defect_40_there_is_one_limit_on_publishes_a_message_and_it_is_enforced() -> None:
    """Defect 40, PS-22: `max_instructions` is alive; weigher and decoder bound the rest."""
    chain = Ledger()
    executor = XcmExecutor(WEIGHER, allow(only_parachains, 10))
    for count, expected in ((10, None), (11, StackLimitReached())):
        result = run(executor, encode((P,) * count), chain)
        assert isinstance(result, Execution)
        assert result.rejected == expected
    assert chain.layers == 10


@pytest.mark.parametrize("size", [0, 1024, 1025, 2048, 2049, 65_536])
def test_defect_41_the_length_of_a_value_is_the_pallets_matter(size: int) -> None:
    """Defect 41, PS-8, PS-20: 1024 or 2048: the codec bounds neither, so that the pallet can say `ValueTooLong`."""
    chain = Ledger()
    result = run(XcmExecutor(WEIGHER, allow()), encode((publish(1, bytes(size)),)), chain)
    assert isinstance(result, Execution)
    assert isinstance(result.outcome, Complete)
    assert chain.stored[PARA, key(1)] == (bytes(size), 0)


def test_a_message_that_fails_at_once_uses_its_first_instruction_only() -> None:
    """PS-21: what upstream's index and weight say together."""
    outcome = execute(Trap(1), *(P,) * 9).outcome
    assert isinstance(outcome, Incomplete)
    assert outcome.used == WEIGHER.weight((Trap(1),))
    assert outcome.used != WEIGHT_ZERO
    assert isinstance(P, Publish)
