"""PS-20, PS-21: what each executed instruction does, and how errors, handlers and appendices follow one another."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.xcm import (
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
)

from pubsub_emulator.primitives.types import ParaId, PubsubKey
from pubsub_emulator.primitives.weights import WEIGHT_ZERO, Weight
from pubsub_emulator.xcm.barriers import AllowPublishFrom, everything, only_parachains
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
    Incomplete,
    InstructionError,
    Outcome,
    StackLimitReached,
    XcmErrorKind,
)
from pubsub_emulator.xcm.response import Limited, Unlimited

EXECUTED = {
    Publish,
    ClearOrigin,
    DescendOrigin,
    ExpectOrigin,
    UnpaidExecution,
    SetTopic,
    ClearTopic,
    SetErrorHandler,
    SetAppendix,
    ClearError,
    Trap,
}
ACCOUNT = AccountId32(None, bytes(32))


def publish_weight(size: int) -> Weight:
    return UNIT + PER_PUBLISH + PER_BYTE * size


# -- publish ---------------------------------------------------------------------------------------------------------


def test_a_parachain_publishes_under_its_own_id() -> None:
    """C1, C4, C5, PS-21: key, value and ttl reach the pallet as they were sent, each item inside a transaction."""
    chain = Ledger()
    execution = execute(publish(1, b"value", 9), publish(2), config=chain)
    assert execution.outcome == Complete(publish_weight(5) * 2)
    assert chain.stored == {(PARA, key(1)): (b"value", 9), (PARA, key(2)): (b"value", 0)}
    assert chain.layers == 2


FOREIGN = {
    "nobody": None,
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
def test_only_an_origin_that_is_exactly_a_parachain_publishes(origin: Location | None) -> None:
    """C2, C3, C6, C7, defect 39, PS-21: anything else is `BadOrigin`, and the pallet is not asked.

    Rows C6 and C7 have `NoPermission`; here the origin register alone decides.
    """
    chain = Ledger()
    message = (publish(),) if origin else (ClearOrigin(), publish())
    execution = execute(*message, origin=origin or ORIGIN, config=chain)
    assert isinstance(execution.outcome, Incomplete)
    assert execution.outcome.error == failed(len(message) - 1, XcmErrorKind.BadOrigin)
    assert chain.layers == 0


def test_a_failing_publish_leaves_nothing_and_keeps_what_came_before() -> None:
    """Defect 37, PS-21: the second of three fails after the pallet wrote; the first stays, the third never runs."""
    chain = Ledger(room=1)
    execution = execute(publish(1), publish(2), publish(3), config=chain)
    assert list(chain.stored) == [(PARA, key(1))]
    assert execution.outcome == Incomplete(publish_weight(5) * 2, failed(1, XcmErrorKind.PublishFailed))


def test_which_pallet_error_it_was_is_not_lost() -> None:
    """Defect 37, PS-21: the `XcmError` is one for all, the pallet's error stands beside it."""
    execution = execute(publish(), config=Ledger(room=0))
    assert isinstance(execution.outcome, Incomplete)
    assert isinstance(execution.outcome.error.cause, TooManyStoredKeys)
    assert str(execution.outcome.error.cause) == "0 keys"


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


# -- origin ----------------------------------------------------------------------------------------------------------


def test_clear_origin_forgets_the_origin() -> None:
    """PS-21: for good."""
    assert isinstance(execute(ClearOrigin(), ExpectOrigin(None)).outcome, Complete)
    assert isinstance(execute(ExpectOrigin(None)).outcome, Incomplete)


def test_descend_origin_goes_below_the_origin() -> None:
    """PS-21: junctions are appended."""
    below = Location(0, (Parachain(PARA), ACCOUNT, OnlyChild()))
    outcome = execute(DescendOrigin((ACCOUNT, OnlyChild())), ExpectOrigin(below)).outcome
    assert isinstance(outcome, Complete)


def test_descending_nowhere_keeps_the_origin() -> None:
    """PS-21: `DescendOrigin(Here)` still lets a parachain publish."""
    assert isinstance(execute(DescendOrigin(()), publish()).outcome, Complete)


def test_descending_from_nobody_is_a_bad_origin() -> None:
    """PS-21."""
    outcome = execute(ClearOrigin(), DescendOrigin((ACCOUNT,))).outcome
    assert isinstance(outcome, Incomplete)
    assert outcome.error == failed(1, XcmErrorKind.BadOrigin)


def test_descending_beyond_eight_junctions_fails_and_changes_nothing() -> None:
    """PS-21: a failing instruction is atomic, registers included: the error handler still meets the old origin."""
    handler = SetErrorHandler((ExpectOrigin(ORIGIN), ClearError()))
    assert isinstance(execute(handler, DescendOrigin((OnlyChild(),) * 8)).outcome, Complete)
    outcome = execute(DescendOrigin((OnlyChild(),) * 8)).outcome
    assert isinstance(outcome, Incomplete)
    assert outcome.error == failed(0, XcmErrorKind.LocationFull)
    assert isinstance(execute(DescendOrigin((OnlyChild(),) * 7)).outcome, Complete)


@pytest.mark.parametrize("expected", [HERE, PARENT, parachain(ParaId(1001)), sibling(PARA), None], ids=str)
def test_expecting_another_origin_fails(expected: Location | None) -> None:
    """PS-20: `ExpectOrigin` compares exactly."""
    outcome = execute(ExpectOrigin(expected)).outcome
    assert isinstance(outcome, Incomplete)
    assert outcome.error == failed(0, XcmErrorKind.ExpectationFalse)


def test_expecting_the_origin_passes() -> None:
    """PS-20."""
    assert isinstance(execute(ExpectOrigin(ORIGIN)).outcome, Complete)


def test_unpaid_execution_checks_the_origin_only_when_told() -> None:
    """PS-20: and leaves the weight limit to barriers."""
    assert isinstance(execute(UnpaidExecution(Unlimited(), None), publish()).outcome, Complete)
    assert isinstance(execute(UnpaidExecution(Limited(WEIGHT_ZERO), ORIGIN), publish()).outcome, Complete)
    outcome = execute(UnpaidExecution(Unlimited(), HERE), publish()).outcome
    assert isinstance(outcome, Incomplete)
    assert outcome.error == failed(0, XcmErrorKind.BadOrigin)
    outcome = execute(ClearOrigin(), UnpaidExecution(Unlimited(), ORIGIN)).outcome
    assert isinstance(outcome, Incomplete)
    assert outcome.error == failed(1, XcmErrorKind.BadOrigin)


# -- topic, trap, everything else ------------------------------------------------------------------------------------


def test_set_topic_and_clear_topic_write_the_topic_register() -> None:
    """PS-20: the message's id stays what it was."""
    assert execute(SetTopic(b"\x07" * 32)).topic == b"\x07" * 32
    assert execute(SetTopic(b"\x07" * 32), ClearTopic()).topic is None
    assert execute(SetTopic(b"\x07" * 32)).message_id == ID


def test_trap_fails_with_its_code() -> None:
    """PS-20."""
    outcome = execute(SetTopic(bytes(32)), Trap(42)).outcome
    assert outcome == Incomplete(UNIT * 2, failed(1, XcmErrorKind.Trap, 42))


@pytest.mark.parametrize("kind", [kind for kind in Instruction.VARIANTS.values() if kind not in EXECUTED])
@settings(max_examples=max(1, settings().max_examples // 6))
@given(data=st.data())
def test_everything_else_is_unimplemented(kind: type[Instruction], data: st.DataObject) -> None:
    """PS-20: 42 instructions decode, and end in `Unimplemented`."""
    outcome = execute(data.draw(of_class(kind)), publish(), config=Ledger()).outcome
    assert isinstance(outcome, Incomplete)
    assert outcome.error == failed(0, XcmErrorKind.Unimplemented)


def test_eleven_instructions_are_executed() -> None:
    """PS-20: the list of the rule."""
    assert len(EXECUTED) == 11
    assert len(Instruction.VARIANTS) == 53


def test_an_empty_message_completes_for_nothing() -> None:
    """PS-20: what a barrier would refuse."""
    assert execute().outcome == Complete(WEIGHT_ZERO)


# -- errors, handlers, appendices ------------------------------------------------------------------------------------


def test_the_appendix_runs_after_success() -> None:
    """PS-20: `SetAppendix`."""
    chain = Ledger()
    assert isinstance(execute(SetAppendix((publish(2),)), publish(1), config=chain).outcome, Complete)
    assert list(chain.stored) == [(PARA, key(1)), (PARA, key(2))]


def test_the_appendix_runs_after_failure_and_the_error_stays() -> None:
    """PS-20: always."""
    chain = Ledger()
    outcome = execute(SetAppendix((publish(2),)), Trap(1), publish(1), config=chain).outcome
    assert isinstance(outcome, Incomplete)
    assert outcome.error == failed(1, XcmErrorKind.Trap, 1)
    assert list(chain.stored) == [(PARA, key(2))]


def test_the_appendix_runs_after_the_error_handler_even_when_that_fails() -> None:
    """PS-20: handler, then appendix; the last error is the outcome's, with its index in its own list."""
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


def test_the_error_handler_does_not_run_after_success() -> None:
    """PS-20: it is dropped, also for the appendix, whose error it does not handle."""
    chain = Ledger()
    outcome = execute(
        SetErrorHandler((publish(2), ClearError())), SetAppendix((Trap(5),)), publish(1), config=chain
    ).outcome
    assert list(chain.stored) == [(PARA, key(1))]
    assert isinstance(outcome, Incomplete)
    assert outcome.error == failed(0, XcmErrorKind.Trap, 5)


def test_clear_error_in_the_handler_makes_the_message_complete() -> None:
    """PS-20: `ClearError` empties the error register."""
    chain = Ledger()
    outcome = execute(SetErrorHandler((ClearError(), publish(2))), Trap(1), config=chain).outcome
    assert isinstance(outcome, Complete)
    assert list(chain.stored) == [(PARA, key(2))]


def test_clear_error_in_the_appendix_makes_the_message_complete() -> None:
    """PS-20: it runs after the failure."""
    assert isinstance(execute(SetAppendix((ClearError(),)), Trap(1)).outcome, Complete)


def test_a_handler_without_clear_error_leaves_the_message_incomplete() -> None:
    """PS-20: handling is not forgiving."""
    outcome = execute(SetErrorHandler((ClearTopic(),)), Trap(1)).outcome
    assert isinstance(outcome, Incomplete)
    assert outcome.error == failed(1, XcmErrorKind.Trap, 1)


def test_the_last_handler_and_the_last_appendix_count() -> None:
    """PS-20: setting one replaces the earlier."""
    chain = Ledger()
    execute(
        SetErrorHandler((publish(1),)),
        SetErrorHandler((publish(2),)),
        SetAppendix((publish(3),)),
        SetAppendix((publish(4),)),
        Trap(0),
        config=chain,
    )
    assert list(chain.stored) == [(PARA, key(2)), (PARA, key(4))]


def test_handlers_and_appendices_may_set_new_ones() -> None:
    """PS-20: main, handler, handler's handler, appendix, appendix' appendix."""
    chain = Ledger()
    inner = (
        SetErrorHandler((publish(2), ClearError())),
        SetAppendix((SetAppendix((publish(4),)), publish(3))),
        Trap(1),
    )
    outcome = execute(SetErrorHandler((publish(1), *inner)), Trap(0), config=chain).outcome
    assert isinstance(outcome, Complete)
    assert list(chain.stored) == [(PARA, key(name)) for name in (1, 2, 3, 4)]


def test_registers_last_from_list_to_list() -> None:
    """PS-20: an origin cleared in the message is still clear in handler and appendix."""
    execution = execute(SetAppendix((publish(1),)), ClearOrigin())
    assert isinstance(execution.outcome, Incomplete)
    assert execution.outcome.error == failed(0, XcmErrorKind.BadOrigin)


# -- weight ----------------------------------------------------------------------------------------------------------


def test_what_follows_a_failure_is_given_back_and_the_failing_instruction_is_not() -> None:
    """PS-21: charged before execution, the rest refunded."""
    outcome = execute(publish(1, b"ab"), Trap(1), publish(2, bytes(500)), SetAppendix((publish(3),))).outcome
    assert isinstance(outcome, Incomplete)
    assert outcome.used == publish_weight(2) + UNIT


def test_a_failing_publish_is_charged_with_its_bytes() -> None:
    """PS-21: or one could make the chain work for nothing."""
    outcome = execute(publish(1, bytes(100)), config=Ledger(room=0)).outcome
    assert isinstance(outcome, Incomplete)
    assert outcome.used == publish_weight(100)


def test_an_unused_handler_is_given_back_and_the_appendix_is_not() -> None:
    """PS-21: each instruction costs itself; a handler costs only when it runs."""
    handler, appendix = SetErrorHandler((publish(1),)), SetAppendix((publish(2, b""),))
    assert execute(handler, appendix).outcome == Complete(UNIT * 2 + publish_weight(0))
    outcome = execute(handler, appendix, Trap(1)).outcome
    assert isinstance(outcome, Incomplete)
    assert outcome.used == UNIT * 3 + publish_weight(5) + publish_weight(0)


def test_replaced_handlers_and_appendices_are_given_back() -> None:
    """PS-21: only what may still run is charged."""
    message = (SetErrorHandler((publish(1),)), SetErrorHandler(()), SetAppendix((publish(2),)), SetAppendix(()))
    assert execute(*message).outcome == Complete(UNIT * 4)


def test_an_appendix_that_sets_an_appendix_is_not_given_back_itself() -> None:
    """PS-21: it is running; or nested appendices would work for nothing."""
    costly = SetAppendix((publish(1, bytes(900)), SetAppendix((publish(2, b""),))))
    assert execute(costly).outcome == Complete(UNIT * 2 + publish_weight(900) + publish_weight(0))


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
    """The executor again, slow and plain: what was done, whether an error was left, and what was executed cost."""
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
def test_the_executor_agrees_with_an_obvious_one(message: Xcm, room: int) -> None:
    """PS-21: over every mix of publishes, traps, handlers and appendices; what ran is paid for, and nothing else."""
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
    strict = XcmExecutor(type(WEIGHER)(WEIGHER.weights, max_instructions=1), NOTHING_BARRED)
    outcome = strict.execute(Ledger(), ORIGIN, (SetErrorHandler((Trap(1), Trap(2))),), UNIT * 3, ID).outcome
    assert outcome == Incomplete(UNIT * 3, failed(0, XcmErrorKind.WeightNotComputable))


class _Nothing:
    def should_execute(self, *_: object) -> None:
        return None


NOTHING_BARRED = _Nothing()


def test_the_barrier_bounds_the_publishes_of_a_message_before_any_is_executed() -> None:
    """Defect 40, PS-22: one limit, and it is enforced."""
    chain = Ledger()
    executor = XcmExecutor(WEIGHER, AllowPublishFrom(only_parachains, 10))
    for count, expected in ((10, None), (11, StackLimitReached())):
        result = run(executor, encode((publish(),) * count), chain)
        assert isinstance(result, Execution)
        assert result.rejected == expected
    assert chain.layers == 10


@pytest.mark.parametrize("size", [0, 1024, 1025, 2048, 2049, 65_536])
def test_the_length_of_a_value_is_left_to_the_pallet(size: int) -> None:
    """Defect 41, PS-8, PS-20: the codec bounds it neither at 1024 nor at 2048, so the pallet can say `ValueTooLong`."""
    chain = Ledger()
    result = run(XcmExecutor(WEIGHER, AllowPublishFrom(everything, 16)), encode((publish(1, bytes(size)),)), chain)
    assert isinstance(result, Execution)
    assert isinstance(result.outcome, Complete)
    assert chain.stored[PARA, key(1)] == (bytes(size), 0)


def test_a_message_that_fails_at_once_uses_its_first_instruction_only() -> None:
    """PS-21: the instructions after it cost nothing."""
    outcome = execute(Trap(1), *(publish(),) * 9).outcome
    assert isinstance(outcome, Incomplete)
    assert outcome.used == WEIGHER.weight((Trap(1),)) != WEIGHT_ZERO
