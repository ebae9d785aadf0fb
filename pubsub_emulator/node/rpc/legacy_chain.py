"""`chain_*`: headers, blocks, and subscriptions to heads."""

from pubsub_emulator.node.chain.block import Chain
from pubsub_emulator.node.chain.timeline import Advance, Timeline
from pubsub_emulator.node.rpc.call import RpcCall, unsubscribes
from pubsub_emulator.node.rpc.encode import block_json, header_json, header_text
from pubsub_emulator.node.rpc.method import Json, method
from pubsub_emulator.node.rpc.params import AT, Param, height
from pubsub_emulator.node.rpc.session import Overflow, RpcSubscription, compact
from pubsub_emulator.primitives.hexadecimal import hexed


def _heights(value: object) -> int | list[int]:
    return [height(item) for item in value] if isinstance(value, list) else height(value)


@method(
    "chain_getBlockHash",
    Param("number", _heights, optional=True, aliases=("hash",)),
    aliases=("chain_getHead",),
)
def block_hash(call: RpcCall, numbers: int | list[int] | None) -> Json:
    """Return the hashes of the best chain's blocks at some heights, or of the best block.

    The answer is a list if `numbers` is a list. The hash at an unknown height is null.
    """
    view = call.view
    if numbers is None:
        return hexed(view.best.hash)
    blocks = [
        view.at_height(number) for number in ([numbers] if isinstance(numbers, int) else numbers)
    ]
    hashes = [None if block is None else hexed(block.hash) for block in blocks]
    return hashes[0] if isinstance(numbers, int) else hashes


@method("chain_getFinalizedHead", aliases=("chain_getFinalisedHead",))
def finalized_head(call: RpcCall) -> Json:
    """Return the hash of the final block."""
    return hexed(call.view.final.hash)


@method("chain_getHeader", AT)
def header(call: RpcCall, at: bytes | None) -> Json:
    """Return a header, or null if the block is not stored."""
    block = call.find(at)
    return None if block is None else header_json(block.header)


@method("chain_getBlock", AT)
def block(call: RpcCall, at: bytes | None) -> Json:
    """Return a block, or null if it is not stored."""
    found = call.find(at)
    return None if found is None else block_json(found)


class Heads(RpcSubscription):
    """A subscription to the headers of new best blocks.

    After a rewind, it sends the new best block, although its height is lower.
    """

    method = "chain_newHead"
    group = "newHeads"
    overflow = Overflow.NEWEST

    def advanced(self, advance: Advance) -> None:
        """Send the headers of new blocks."""
        change = advance.chains[self.chain]
        if advance.rewound and change.view.best is not change.before:
            self.notify(header_text(advance, change.view.best))
        for block in change.new:
            self.notify(header_text(advance, block))

    def newest(self, timeline: Timeline) -> None:
        """Send the header of the best block."""
        self.notify(compact(header_json(timeline.views[self.chain].best.header)))


class AllHeads(Heads):
    """A subscription to the headers of all new blocks.

    It sends the same headers as `Heads`, because a chain of this node only forks by rewinds.
    """

    method = "chain_allHead"
    group = "allHeads"


class FinalizedHeads(Heads):
    """A subscription to the headers of blocks that became final."""

    method = "chain_finalizedHead"
    group = "finalizedHeads"

    def __init__(self, chain: Chain) -> None:
        super().__init__(chain)
        self.sent = 0
        """The height of the final block that was sent last."""

    def advanced(self, advance: Advance) -> None:
        """Send the headers of blocks that became final."""
        change = advance.chains[self.chain]
        if advance.rewound and change.view.final.number < self.sent:
            self.notify(header_text(advance, change.view.final))
        for block in change.finalized:
            self.notify(header_text(advance, block))
        self.sent = change.view.final.number

    def newest(self, timeline: Timeline) -> None:
        """Send the header of the final block."""
        final = timeline.views[self.chain].final
        self.sent = final.number
        self.notify(compact(header_json(final.header)))


def _declare(kind: type[Heads], name: str, *aliases: str) -> None:
    """Declare the methods that begin and end a subscription of a kind."""

    @method(name, aliases=aliases, live=True)
    def subscribe(call: RpcCall) -> Json:
        return call.begin(kind(call.chain))

    ending, *others = (
        beginning.replace("subscribe", "unsubscribe") for beginning in (name, *aliases)
    )
    unsubscribes(ending, kind.group, *others)


_declare(Heads, "chain_subscribeNewHeads", "chain_subscribeNewHead", "subscribe_newHead")
_declare(AllHeads, "chain_subscribeAllHeads")
_declare(FinalizedHeads, "chain_subscribeFinalizedHeads", "chain_subscribeFinalisedHeads")
