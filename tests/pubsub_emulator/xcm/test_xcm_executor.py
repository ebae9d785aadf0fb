"""PS-20, PS-21: what each executed instruction does, and how errors, handlers and appendices follow
one another.
"""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.xcm.messages import (
    ID,
    ORIGIN,
    PARA,
    PER_BYTE,
    PER_PUBLISH,
    UNIT,
    WEIGHER,
    Ledger,
    TooManyStoredKeys,
    execute,
    failed,
    key,
    messages,
    of_class,
    publish,
    run,
    shown,
)

from pubsub_emulator.primitives.types import ParaId, PubsubKey
from pubsub_emulator.primitives.weights import WEIGHT_ZERO, Weight
from pubsub_emulator.xcm.barriers import (
    AllowPublishFrom,
    AllowUnpaidExecutionFrom,
    AnyOf,
    everything,
)
from pubsub_emulator.xcm.executor import Execution, XcmExecutor
from pubsub_emulator.xcm.instructions import (
    ClearError,
    ClearOrigin,
    ClearTopic,
    DescendOrigin,
    ExpectOrigin,
    Instruction,
    Publish,
    SetAppendix,
    SetErrorHandler,
    SetTopic,
    Trap,
    UnpaidExecution,
    Xcm,
)
from pubsub_emulator.xcm.location import (
    HERE,
    PARENT,
    AccountId32,
    Junction,
    Location,
    OnlyChild,
    Parachain,
    parachain,
    sibling,
)
from pubsub_emulator.xcm.message import encode
from pubsub_emulator.xcm.outcome import (
    Complete,
    Error,
    Incomplete,
    InstructionError,
    Outcome,
    Unsupported,
    XcmErrorKind,
)
from pubsub_emulator.xcm.response import Limited, Unlimited

EXECUTED = {
    *(Publish, ClearOrigin, DescendOrigin, ExpectOrigin, UnpaidExecution, SetTopic, ClearTopic),
    *(SetErrorHandler, SetAppendix, ClearError, Trap),
}
ACCOUNT = AccountId32(None, bytes(32))


def publish_weight(size: int) -> Weight:
    return UNIT + PER_PUBLISH + PER_BYTE * size


def test_a_parachain_publishes_under_its_own_id() -> None:
    """C1, C4, C5, PS-21: key, value and ttl reach the pallet as they were sent, each item inside a
    transaction.
    """
    chain = Ledger()
    execution = execute(publish(1, b"value", 9), publish(2), config=chain)
    assert execution.outcome == Complete(publish_weight(5) * 2)
    assert chain.stored == {(PARA, key(1)): (b"value", 9), (PARA, key(2)): (b"value", 0)}
    assert chain.layers == 2


BELOW = Location(0, (Parachain(PARA), ACCOUNT, OnlyChild()))
COMPLETE: list[Xcm] = [
    (ClearOrigin(), ExpectOrigin(None)),
    (DescendOrigin((ACCOUNT, OnlyChild())), ExpectOrigin(BELOW)),
    (DescendOrigin(()), publish()),
    (DescendOrigin((OnlyChild(),) * 7),),
    (SetErrorHandler((ExpectOrigin(ORIGIN), ClearError())), DescendOrigin((OnlyChild(),) * 8)),
    (UnpaidExecution(Unlimited(), None), publish()),
    (UnpaidExecution(Limited(WEIGHT_ZERO), ORIGIN), publish()),
]


@pytest.mark.parametrize("message", COMPLETE, ids=shown)
def test_origins_are_cleared_descended_and_compared(message: Xcm) -> None:
    """PS-20, PS-21: for good; a failing instruction is atomic, so its error handler still meets the
    old origin.
    """
    assert isinstance(execute(*message).outcome, Complete)


OTHERS = [HERE, PARENT, parachain(ParaId(1001)), sibling(PARA), None]
INCOMPLETE: list[tuple[Xcm, InstructionError]] = [
    ((ClearOrigin(), DescendOrigin((ACCOUNT,))), failed(1, XcmErrorKind.BadOrigin)),
    ((DescendOrigin((OnlyChild(),) * 8),), failed(0, XcmErrorKind.LocationFull)),
    *(((ExpectOrigin(other),), failed(0, XcmErrorKind.ExpectationFalse)) for other in OTHERS),
    ((UnpaidExecution(Unlimited(), HERE), publish()), failed(0, XcmErrorKind.BadOrigin)),
    ((ClearOrigin(), UnpaidExecution(Unlimited(), ORIGIN)), failed(1, XcmErrorKind.BadOrigin)),
    ((ClearOrigin(), publish()), failed(1, XcmErrorKind.BadOrigin)),
]


@pytest.mark.parametrize(("message", "error"), INCOMPLETE, ids=shown)
def test_another_origin_than_is_wanted_is_an_error(message: Xcm, error: InstructionError) -> None:
    """C2, PS-20, PS-21: `ExpectOrigin` compares exactly, `UnpaidExecution` only when told."""
    outcome = execute(*message).outcome
    assert isinstance(outcome, Incomplete)
    assert outcome.error == error


FOREIGN = {
    "the relay chain itself": HERE,
    "a parent": PARENT,
    "a sibling": sibling(PARA),
    "an account": Location(0, (ACCOUNT,)),
    "an account on a sibling": Location(1, (Parachain(PARA), ACCOUNT)),
    "an account on the parachain": Location(0, (Parachain(PARA), ACCOUNT)),
    "a pallet of the parachain": Location(0, (Parachain(PARA), Junction.VARIANTS[4](1))),
    "a parachain of a parachain": Location(0, (Parachain(PARA), Parachain(PARA))),
    "a parachain two levels up": Location(2, (Parachain(PARA),)),
}


@pytest.mark.parametrize("origin", FOREIGN.values(), ids=FOREIGN)
def test_only_an_origin_that_is_exactly_a_parachain_publishes(origin: Location) -> None:
    """C3, C6, C7, defect 39, PS-21: anything else is `BadOrigin`, and the pallet is not asked.

    Rows C6 and C7 have `NoPermission`; here the origin register alone decides.
    """
    chain = Ledger()
    outcome = execute(publish(), origin=origin, config=chain).outcome
    assert isinstance(outcome, Incomplete)
    assert outcome.error == failed(0, XcmErrorKind.BadOrigin)
    assert chain.layers == 0


def test_a_message_that_the_barrier_refuses_does_not_begin() -> None:
    """PS-22: the outcome is an error of instruction 0, and the barrier's reason stands beside."""
    chain = Ledger()
    execution = execute(publish(), config=chain, barrier=AnyOf())
    assert execution.outcome == Error(failed(0, XcmErrorKind.Barrier))
    assert execution.rejected == Unsupported()
    assert chain.layers == 0


def test_a_failing_publish_leaves_nothing_and_keeps_what_came_before() -> None:
    """Defect 37, PS-21: the second of three fails after the pallet wrote; the first stays, the
    third never runs.
    """
    chain = Ledger(room=1)
    execution = execute(publish(1), publish(2), publish(3), config=chain)
    assert list(chain.stored) == [(PARA, key(1))]
    assert execution.outcome == Incomplete(
        publish_weight(5) * 2, failed(1, XcmErrorKind.PublishFailed)
    )


def test_pallet_errors_behind_a_cleared_error_are_not_lost() -> None:
    """PS-21: the outcome is complete, the execution still tells what failed."""
    execution = execute(SetErrorHandler((ClearError(),)), publish(), config=Ledger(room=0))
    assert isinstance(execution.outcome, Complete)
    assert [type(failure.cause) for failure in execution.failures] == [TooManyStoredKeys]


class Broken(Ledger):
    """A chain with a defect of its own."""

    def publish(self, para: ParaId, key: PubsubKey, value: bytes, ttl: int) -> None:
        super().publish(para, key, value, ttl)
        raise ZeroDivisionError


def test_a_defect_of_the_chain_is_not_mistaken_for_a_failed_publish() -> None:
    """PS-21: only `PublishFailure` is; anything else flies, and rolls back on its way."""
    chain = Broken()
    with pytest.raises(ZeroDivisionError):
        execute(publish(), config=chain)
    assert chain.stored == {}


def test_set_topic_and_clear_topic_write_the_topic_register() -> None:
    """PS-20: the message's id stays what it was."""
    assert execute(SetTopic(b"\x07" * 32)).topic == b"\x07" * 32
    assert execute(SetTopic(b"\x07" * 32), ClearTopic()).topic is None
    assert execute(SetTopic(b"\x07" * 32)).message_id == ID


@pytest.mark.parametrize(
    "kind", [kind for kind in Instruction.VARIANTS.values() if kind not in EXECUTED]
)
@settings(max_examples=max(1, settings().max_examples // 6))
@given(data=st.data())
def test_everything_else_is_unimplemented(kind: type[Instruction], data: st.DataObject) -> None:
    """PS-20: every other instruction decodes, and ends in `Unimplemented`."""
    outcome = execute(data.draw(of_class(kind)), publish(), config=Ledger()).outcome
    assert isinstance(outcome, Incomplete)
    assert outcome.error == failed(0, XcmErrorKind.Unimplemented)


def test_the_appendix_runs_after_the_error_handler_even_when_that_fails() -> None:
    """PS-20: handler, then appendix; the last error is the outcome's, with its index in its own
    list.
    """
    chain = Ledger()
    message = (
        SetAppendix((publish(3),)),
        SetErrorHandler((publish(2), ClearTopic(), Trap(2), publish(9))),
        Trap(1),
        publish(9),
    )
    execution = execute(*message, config=chain)
    assert list(chain.stored) == [(PARA, key(2)), (PARA, key(3))]
    assert isinstance(execution.outcome, Incomplete)
    assert execution.outcome.error == failed(2, XcmErrorKind.Trap, 2)
    assert execution.failures == (failed(2, XcmErrorKind.Trap, 1), failed(2, XcmErrorKind.Trap, 2))


@given(messages())
def test_no_message_makes_the_executor_raise_or_use_more_than_was_weighed(message: Xcm) -> None:
    """PS-21: whatever it is; and a complete one without handlers uses exactly that."""
    weight = WEIGHER.weight(message)
    assert isinstance(weight, Weight)
    outcome = execute(*message).outcome
    assert isinstance(outcome, Complete | Incomplete)
    assert outcome.used.all_lte(weight)
    assert Outcome.codec.decode(Outcome.codec.encode(outcome)) == outcome


STEPS: st.SearchStrategy[Instruction] = st.deferred(
    lambda: st.one_of(
        st.just(publish(1)),
        st.just(Trap(1)),
        st.just(ClearError()),
        st.just(ClearOrigin()),
        st.lists(STEPS, max_size=3).map(lambda steps: SetErrorHandler(tuple(steps))),
        st.lists(STEPS, max_size=3).map(lambda steps: SetAppendix(tuple(steps))),
    )
)


def obvious(message: Xcm, room: int) -> tuple[list[str], bool, Weight]:
    """The executor again, slow and plain: what was done, whether an error was left, and what was
    executed cost.
    """
    done: list[str] = []
    used = WEIGHT_ZERO
    origin, error, stored = True, False, 0
    handler: Xcm = ()
    appendix: Xcm = ()
    while message:
        for step in message:
            works = True
            used += UNIT
            if isinstance(step, Publish):
                used += PER_PUBLISH + PER_BYTE * len(step.value)
                works = origin and (stored > 0 or room > 0)
                stored += works
                done.append("published" if works else "refused")
            elif isinstance(step, Trap):
                works = False
                done.append("trapped")
            elif isinstance(step, ClearError):
                error = False
            elif isinstance(step, ClearOrigin):
                origin = False
            elif isinstance(step, SetErrorHandler):
                handler = step.inner
            elif isinstance(step, SetAppendix):
                appendix = step.inner
            if not works:
                error = True
                break
        else:
            handler = ()
        message, handler = handler, ()
        if not message:
            message, appendix = appendix, ()
    return done, error, used


@given(st.lists(STEPS, max_size=6).map(tuple), st.integers(0, 1))
@example((SetAppendix((publish(1),)), Trap(1)), 1)
@example((SetAppendix((publish(1),)), SetAppendix(()), publish(1)), 1)
@example((SetAppendix((SetAppendix((publish(1),)), publish(1))),), 1)
@example((SetAppendix((publish(1),)), ClearOrigin()), 1)
@example((SetAppendix((ClearError(),)), Trap(1), publish(1)), 1)
@example((SetErrorHandler((publish(1),)), SetErrorHandler(()), publish(1)), 0)
@example((SetErrorHandler((publish(1), ClearError())), Trap(1)), 1)
@example((SetErrorHandler((Trap(2), publish(1))), SetAppendix((publish(1),)), Trap(1)), 1)
@example((SetErrorHandler((publish(1), ClearError())), SetAppendix((Trap(5),)), publish(1)), 1)
def test_the_executor_agrees_with_an_obvious_one(message: Xcm, room: int) -> None:
    """PS-21: over every mix of publishes, traps, handlers and appendices; what ran is paid for, and
    nothing else.
    """
    done: list[str] = []

    class Witness(Ledger):
        def publish(self, para: ParaId, key: PubsubKey, value: bytes, ttl: int) -> None:
            super().publish(para, key, value, ttl)
            done.append("published")

    weight = WEIGHER.weight(message)
    if isinstance(weight, InstructionError):
        return
    execution = execute(*message, config=Witness(room))
    expected, error, used = obvious(message, room)
    assert done == [event for event in expected if event == "published"]
    assert len(execution.failures) == len(expected) - len(done)
    assert isinstance(execution.outcome, Incomplete) == error
    assert isinstance(execution.outcome, Complete | Incomplete)
    assert execution.outcome.used == used


def test_a_handler_that_cannot_be_weighed_is_an_error_of_its_own() -> None:
    """PS-21: reached only by a message that was weighed by a laxer weigher than the executor's."""
    strict = XcmExecutor(
        type(WEIGHER)(WEIGHER.weights, max_instructions=1), AllowUnpaidExecutionFrom(everything)
    )
    outcome = strict.execute(
        Ledger(), ORIGIN, (SetErrorHandler((Trap(1), Trap(2))),), UNIT * 3, ID
    ).outcome
    assert outcome == Incomplete(UNIT * 3, failed(0, XcmErrorKind.WeightNotComputable))


@pytest.mark.parametrize("size", [0, 1024, 1025, 2048, 2049, 65_536])
def test_the_length_of_a_value_is_left_to_the_pallet(size: int) -> None:
    """Defect 41, PS-8, PS-20: the codec bounds it neither at 1024 nor at 2048, so the pallet can
    say `ValueTooLong`.
    """
    chain = Ledger()
    result = run(
        XcmExecutor(WEIGHER, AllowPublishFrom(everything, 16)),
        encode((publish(1, bytes(size)),)),
        chain,
    )
    assert isinstance(result, Execution)
    assert isinstance(result.outcome, Complete)
    assert chain.stored[PARA, key(1)] == (bytes(size), 0)
