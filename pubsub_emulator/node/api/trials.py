"""Trials: an extrinsic tried on a block, messages tried on a branch of the network; nothing is kept."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from pubsub_emulator.emulator.network import actions
from pubsub_emulator.emulator.network.arguments import BadRequest
from pubsub_emulator.node.at import At
from pubsub_emulator.node.chain.block import RELAY, Chain, Moment
from pubsub_emulator.node.chain.live import LiveNetwork
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.signatures import LENGTH, Scheme
from pubsub_emulator.primitives.types import AccountId, ParaId
from pubsub_emulator.runtime.accounts.chain import NextBlock
from pubsub_emulator.runtime.accounts.extrinsic import Era, Extra, SignedExtrinsic, UndecodableExtrinsic
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.pallet_subscriber.storage import LAST_RELAY_PARENT

MOST_STEPS: Final = 64
"""Steps within which messages must have arrived."""

Changes = Mapping[bytes, tuple[bytes | None, bytes | None]]
"""Old and new values by key; roots of child tries are among them."""


def differences(old: State, new: State) -> Changes:
    """The differences between two states."""
    return {key: (before, after) for key, before, after in old.top.differences(new.top)}


def try_extrinsic(at: At, raw: bytes, *, signatures: bool = True) -> Changes:
    """Changes by an extrinsic beside the next block's own. Raises `UndecodableExtrinsic`, `InvalidTransaction`."""
    without = NextBlock(at.runtime, at.state, at.header).end()
    block = NextBlock(at.runtime, at.state, at.header, signatures=signatures)
    block.apply(raw)
    return differences(without, block.end())


def try_call(at: At, call: bytes, who: AccountId) -> Changes:
    """Changes that a call of `who` would make in the next block, without a signature and the block's own changes."""
    try:
        found = at.runtime.calls.decode(call)
    except ScaleError as error:
        raise UndecodableExtrinsic(str(error)) from error
    nonce = NextBlock(at.runtime, at.state, at.header).nonce(who)
    scheme = Scheme.SR25519
    extrinsic = SignedExtrinsic(who, scheme, bytes(LENGTH[scheme]), Extra(Era(), nonce, 0), found, 0)
    return try_extrinsic(at, extrinsic.encode(), signatures=False)


def try_messages(live: LiveNetwork, moment: Moment, chain: Chain, todo: Iterable[actions.Action]) -> Changes:
    """Changes of a chain by messages sent the true way. Raises `PubsubError` where they cannot be or do not come."""
    branch = live.branch(moment)
    sent = list(todo)
    for action in sent:
        branch.apply(action)
    senders = [each.para for each in sent if isinstance(each, actions.Upward)]
    senders += [each.sender for each in sent if isinstance(each, actions.Horizontal)]
    turns = dict.fromkeys(map(ParaId, senders))
    left = _until(branch, turns, lambda _: not _wait(branch, sent), "leave their senders")
    if chain is RELAY:
        after = branch.step().relay.state
    else:
        arrived = _until(branch, (chain,), lambda each: _has_seen(each, chain, left), f"reach parachain {chain}")
        after = arrived.heads[chain].state
    return differences(moment.heads[chain].state, after)


def _wait(branch: LiveNetwork, sent: Iterable[actions.Action]) -> bool:
    """Whether any message still waits with its sender."""
    for action in sent:
        match action:
            case actions.Upward() if action.message in branch.network.parachain(action.para).upward:
                return True
            case actions.Horizontal():
                waiting = branch.network.parachain(action.sender).horizontal
                if any((each.recipient, each.data) == (action.recipient, action.message) for each in waiting):
                    return True
    return False


def _has_seen(moment: Moment, chain: ParaId, sent: Moment) -> bool:
    parent = LAST_RELAY_PARENT.get(Storage(moment.heads[chain].state))
    return parent is not None and parent >= sent.number


def _until(branch: LiveNetwork, turns: Iterable[ParaId], done: Callable[[Moment], bool], what: str) -> Moment:
    """Step, giving some parachains a turn each time. Raises `BadRequest` when it is never done."""
    for _ in range(MOST_STEPS):
        for para in turns:
            branch.apply(actions.Turn(para=para))
        moment = branch.step()
        if done(moment):
            return moment
    raise BadRequest(f"the messages did not {what} in {MOST_STEPS} relay blocks")
