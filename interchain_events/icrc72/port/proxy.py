"""The proxy canister, through which users call the roles.

Roles do not admit calls of users (IC-10). The proxy makes these calls for them, and records the
messages that it gets from other canisters.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple, cast

from interchain_events.icrc72.ic.candid.did import parse_types
from interchain_events.icrc72.ic.candid.types import Variant
from interchain_events.icrc72.ic.canister import Answer, Canister, Context
from interchain_events.icrc72.ic.errors import Trap
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.services import Codec

INTERFACE: Final = """service : {
  forward : (canister : principal, method : text, arg : blob) ->
    (variant { Ok : blob; Err : record { code : nat; message : text } });
  received : (after : nat) -> (vec record { caller : principal; method : text; arg : blob }) query;
}
"""
"""The interface, which is also the proxy's public metadata."""
MOST_KEPT: Final = 1000
"""How many of the last messages it keeps."""
MOST_KEPT_BYTES: Final = 1_000_000
"""The most bytes of these messages together, so that they fit into one answer."""
FORWARD: Final = Codec(parse_types("(principal, text, blob)"))
FORWARDED: Final = Codec(
    parse_types("(variant { Ok : blob; Err : record { code : nat; message : text } })")
)
AFTER: Final = Codec(parse_types("(nat)"))
RECEIVED: Final = Codec(
    parse_types("(vec record { caller : principal; method : text; arg : blob })")
)


class Received(NamedTuple):
    """A message that another canister sent."""

    caller: Principal
    method: str
    arg: bytes

    @property
    def size(self) -> int:
        """Return the bytes that it takes."""
        return len(self.caller) + len(self.method.encode()) + len(self.arg)


class Proxy(Canister):
    """A canister that forwards calls of users, and records and answers those of canisters."""

    metadata: Mapping[str, bytes] = {"candid:service": INTERFACE.encode()}

    def __init__(self) -> None:
        self.received: tuple[Received, ...] = ()
        self.dropped = 0
        """How many messages were dropped before those that are kept."""
        self.kept_bytes = 0
        """The bytes of the messages that are kept."""

    def inspect(self, method: str, _caller: Principal, _arg: bytes) -> bool:
        """Return whether a user's request is admitted. Only `forward` is."""
        return method == "forward"

    def update(self, ctx: Context, method: str, arg: bytes) -> None:
        """Forward a call, or record any other one and reply without values."""
        if method == "forward":
            raw, name, inner = cast("tuple[bytes, str, bytes]", FORWARD.decode(arg))
            ctx.call(Principal(raw), name, inner, self._back)
            return
        self._keep(Received(ctx.caller, method, arg))
        ctx.reply(b"DIDL\0\0")

    def _keep(self, message: Received) -> None:
        """Keep a message, and drop the oldest ones beyond the limits.

        A message that is larger than all that may be kept is dropped, too.
        """
        kept = (*self.received, message)
        size = self.kept_bytes + message.size
        first = 0
        while len(kept) - first > MOST_KEPT or size > MOST_KEPT_BYTES:
            size -= kept[first].size
            first += 1
        self.received = kept[first:]
        self.kept_bytes = size
        self.dropped += first

    @staticmethod
    def _back(ctx: Context, answer: Answer) -> None:
        """Reply to the user with the answer of the forwarded call."""
        result: Variant[str, object]
        result = (
            Variant("Ok", answer.data)
            if answer.ok
            else Variant("Err", (answer.code, answer.message))
        )
        ctx.reply(FORWARDED.encode(result))

    def query(self, _caller: Principal, _time: int, method: str, arg: bytes) -> bytes:
        """Return the recorded messages after the first `after` ones that were ever received."""
        if method != "received":
            raise Trap(f"IC0536: there is no query {method}")
        after = max(cast("tuple[int]", AFTER.decode(arg))[0] - self.dropped, 0)
        return RECEIVED.encode(self.received[after:])
