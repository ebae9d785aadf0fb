"""Candid from strangers: what does not fit is read over and leaves no trace (IC-11b)."""

from pubsub_emulator.icrc72.ic.candid import types as t
from pubsub_emulator.icrc72.ic.candid.decode import KEPT_MESSAGES, Decoder
from pubsub_emulator.icrc72.ic.candid.encode import Encoder
from pubsub_emulator.icrc72.ic.candid.wire import DEPTH

NULL = t.PRIMS["null"]


def _optional_records(case: t.Field) -> t.Vec:
    return t.Vec(t.Opt(t.Record((t.Field(0, "inner", t.Cases((case,))),))))


def test_ic_11b_a_value_that_does_not_fit_leaves_the_depth_of_nesting_as_it_was() -> None:
    """Else a message with more such values than the depth allows would be refused, though it is flat."""
    sent = _optional_records(t.Field(7, "unknown", NULL))
    wanted = _optional_records(t.Field(8, "known", NULL))
    count = 4 * DEPTH
    message = Encoder([sent]).encode(((t.Variant("unknown", None),),) * count)
    assert Decoder([wanted]).decode(message) == ((None,) * count,)


def test_ic_11b_a_message_without_arguments_is_read_again_after_many_others() -> None:
    """Its header is known by then, while the message itself is no longer among the recent ones."""
    decoder = Decoder([])
    empty = Encoder([]).encode()
    nat = Encoder([t.PRIMS["nat"]])
    assert decoder.decode(empty) == ()
    for number in range(KEPT_MESSAGES + 1):
        assert decoder.decode(nat.encode(number)) == ()
    assert decoder.decode(empty) == ()
