"""A broadcaster that sends what users say, in the place of one that the candidate knows.

Honest broadcasters only pass on events of publishers, with headers. The stand sends notifications
with any ids, data and headers, which a subscriber of ICRC-72 has to take as well.
"""

import struct
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple, cast

from interchain_events.icrc72.cheats.stage import SAY
from interchain_events.icrc72.ic.candid.types import Variant
from interchain_events.icrc72.ic.canister import BOUNDED, Canister, Context
from interchain_events.icrc72.ic.errors import Trap
from interchain_events.icrc72.ic.principal import ANONYMOUS, Principal
from interchain_events.icrc72.ic.stable import decode
from interchain_events.icrc72.messages import EventNotification
from interchain_events.icrc72.methods import CONFIRM
from interchain_events.icrc72.values import Value, array, blob, nat

LARGE: Final = 1_900_000
"""The bytes of the largest data: as many as a batch of a broadcaster may have."""
_DEEP: Final = 60
"""How deep the data are nested. Compilers of Candid differ; the drafts' own are a few levels."""


class Stand(Canister):
    """A canister that calls what users say, and accepts all confirmations."""

    def update(self, ctx: Context, method: str, arg: bytes) -> None:
        """Make the call in the argument of `say`, or accept a confirmation."""
        if method == SAY:
            target, called, raw = cast("tuple[Principal, str, bytes]", decode(arg))
            ctx.call(target, called, raw, lambda _ctx, _answer: None, kind=BOUNDED)
            ctx.reply(b"")
        elif method == CONFIRM.name:
            accepted: Variant[Literal["allAccepted"], None] = Variant("allAccepted", None)
            CONFIRM.reply(ctx, accepted)
        else:
            raise Trap(f"there is no method {method}")


class Odd(NamedTuple):
    """A notification that only the stand sends."""

    rule: str
    """The rule that demands that the subscriber takes it."""
    about: str
    """Its unusual property, in a word or two."""
    notification: EventNotification


def variants() -> dict[str, Value]:
    """Return a value of each variant of ICRC16, by its name."""
    five = nat(5)
    values: dict[str, object] = {
        "Array": (five,),
        "Blob": b"\0\xff",
        "Bool": True,
        "Bytes": b"\1\2",
        "Class": (("name", five, True),),
        "Float": struct.pack("<d", 1.5),
        "Floats": (struct.pack("<d", 1.5), struct.pack("<d", -2.5)),
        "Int": -5,
        "Int16": -5,
        "Int32": -5,
        "Int64": -5,
        "Int8": -5,
        "Map": (("key", five),),
        "ValueMap": ((five, five),),
        "Nat": 2**70,
        "Nat16": 5,
        "Nat32": 5,
        "Nat64": 5,
        "Nat8": 5,
        "Nats": (5, 2**70),
        "Option": None,
        "Principal": ANONYMOUS,
        "Set": (five,),
        "Text": "ü",
    }
    return {name: cast("Value", Variant(name, value)) for name, value in values.items()}


def odd_notifications(namespace: str, source: Principal, time: int) -> Iterator[Odd]:
    """Yield notifications of one chain, each of which is unusual in one way.

    Their events' ids ascend, and each event names the one before it as its predecessor.
    """
    last: int | None = None
    number = 0

    def odd(
        rule: str, about: str, identifier: int, data: Value, headers: tuple[()] | None = ()
    ) -> Odd:
        nonlocal last, number
        number += 1
        note = EventNotification(
            notificationId=number,
            eventId=identifier,
            prevEventId=last,
            timestamp=time,
            namespace=namespace,
            data=data,
            headers=headers,
            source=source,
            filter=None,
        )
        last = identifier
        return Odd(rule, about, note)

    yield odd("IC-25 ids", "id 0", 0, nat(0))
    yield odd("IC-22", "no headers", 1, nat(1), None)
    for identifier, (name, value) in enumerate(variants().items(), 1_000_001):
        yield odd("IC-20", name, identifier, value)
    deep: Value = nat(5)
    for _ in range(_DEEP):
        deep = array([deep])
    yield odd("IC-20", f"{_DEEP} levels", 1_000_100, deep)
    yield odd("IC-7", f"{LARGE:,} bytes", 1_000_101, blob(bytes(LARGE)))
    for power in (31, 32, 53, 63, 64, 128):
        yield odd("IC-25 ids", f"id 2^{power}", 2**power, nat(power))
