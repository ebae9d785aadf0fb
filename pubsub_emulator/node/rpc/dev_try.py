"""`dev_dryRun` and `dev_runBlock` (`--dev`): dry runs, and blocks that are run again.

Both work on copies of states, so that the chains do not change.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from pubsub_emulator.emulator.network import actions
from pubsub_emulator.emulator.network.arguments import BadRequest
from pubsub_emulator.node.api.runs import CannotRun, Phase, run_block
from pubsub_emulator.node.at import At
from pubsub_emulator.node.chain.block import RELAY, Chain, Moment, StoredBlock
from pubsub_emulator.node.chain.live import LiveNetwork
from pubsub_emulator.node.rpc.call import RpcCall, attempt
from pubsub_emulator.node.rpc.dev import MESSAGES, Messages, inputs
from pubsub_emulator.node.rpc.encode import maybe_hexed
from pubsub_emulator.node.rpc.errors import refused
from pubsub_emulator.node.rpc.method import Json, method
from pubsub_emulator.node.rpc.params import (
    Param,
    block_hash,
    boolean,
    fields,
    height,
    hexadecimal,
    list_of,
    text,
)
from pubsub_emulator.node.types.bodies import decode_events, decode_extrinsic
from pubsub_emulator.node.types.delta import delta
from pubsub_emulator.node.types.rows import parse_row
from pubsub_emulator.primitives.errors import PubsubError, ScaleError
from pubsub_emulator.primitives.header import DigestItem, Header, read_digest_item
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.scale import Reader
from pubsub_emulator.primitives.signatures import LENGTH, Scheme
from pubsub_emulator.primitives.ss58 import BadAddress, decode_address
from pubsub_emulator.primitives.types import AccountId, Hash, ParaId
from pubsub_emulator.runtime.accounts.chain import NextBlock
from pubsub_emulator.runtime.accounts.extrinsic import (
    Era,
    Extra,
    SignedExtrinsic,
    UndecodableExtrinsic,
)
from pubsub_emulator.runtime.accounts.timestamp import NOW
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.pallet_subscriber.storage import LAST_RELAY_PARENT

MOST_STEPS: Final = 64
"""The maximum number of relay blocks in which messages must arrive."""

Changes = Mapping[bytes, tuple[bytes | None, bytes | None]]
"""Old and new values by storage key. The keys of child tries' roots are among them."""


@dataclass(frozen=True, slots=True)
class _Unsigned:
    """A call with the account that makes it, as an alternative to a signed extrinsic."""

    call: bytes
    address: AccountId


@dataclass(frozen=True, slots=True)
class DryRun(Messages):
    """Parameters of `dev_dryRun`: an extrinsic or messages, and the form of the answer.

    Messages must all be of one kind.
    """

    extrinsic: bytes | _Unsigned | None = None
    """The extrinsic, or a call with its account."""
    raw: bool = False
    """Whether to return pairs of key and new value, as bytes."""
    html: bool = False
    """Whether to return an HTML page."""
    at: bytes | None = None
    """The block to run on, by its hash. The default is the best block."""


def _account(value: object) -> AccountId:
    """Read an account: 32 bytes as hexadecimal digits, or an SS58 address."""
    try:
        account = hexadecimal(value) if str(value).startswith("0x") else decode_address(text(value))
    except BadAddress as error:
        raise ValueError(str(error)) from error
    if len(account) != 32:
        raise ValueError(f"an account has 32 bytes, not {len(account)}")
    return AccountId(account)


def _extrinsic(value: object) -> bytes | _Unsigned:
    """Read an extrinsic, or an object with a call and an address."""
    return _UNSIGNED(value) if isinstance(value, dict) else hexadecimal(value)


_UNSIGNED: Final = fields(
    _Unsigned, {"call": hexadecimal, "address": _account}, ("call", "address")
)
_DRY_RUN: Final = fields(
    DryRun, {**MESSAGES, "extrinsic": _extrinsic, "raw": boolean, "html": boolean, "at": block_hash}
)


@method("dev_dryRun", Param("config", _DRY_RUN), unsafe=True)
async def dry_run(call: RpcCall, config: DryRun) -> Json:
    """Return the storage that an extrinsic or messages would change.

    The default answer has old and new values and their difference in the form of jsondiffpatch.
    """
    inputs_given = [
        name for name in ("extrinsic", "ump", "dmp", "hrmp") if getattr(config, name) is not None
    ]
    if len(inputs_given) != 1:
        raise refused(
            "one of extrinsic, ump, dmp and hrmp must be given at a time, and the call has"
            f" {' and '.join(inputs_given) or 'none of them'}"
        )
    block = call.block(config.at)
    at = call.node.at(block)
    if config.extrinsic is not None:
        changes = _try(at, config.extrinsic)
    else:
        changes = await _send(call, block, list(inputs(call, config)))
    if config.raw:
        return [[hexed(key), maybe_hexed(new)] for key, (_, new) in changes.items()]
    shown = difference(at, changes)
    if not config.html:
        return shown
    if call.node.draw is None:
        raise refused("this node draws no pages")
    return call.node.draw(f"{call.node.chain_name(call.chain)}, after block {block.number}", shown)


def _try(at: At, extrinsic: bytes | _Unsigned) -> Changes:
    """Return the changes that an extrinsic or a call makes. Raises `RpcError` with code 1."""
    try:
        if isinstance(extrinsic, _Unsigned):
            return try_call(at, extrinsic.call, extrinsic.address)
        return try_extrinsic(at, extrinsic)
    except PubsubError as error:
        raise refused(error) from error


async def _send(call: RpcCall, block: StoredBlock, todo: list[actions.Action]) -> Changes:
    """Return the changes that messages make if they are sent after a block.

    The whole network continues from the block, so it must be the newest one of its chain after some
    relay block. Raises `RpcError` with code 1.
    """
    moment = call.node.timeline.moment_of(block)
    if moment is None or moment.heads[call.chain] is not block:
        raise refused(
            f"messages are tried on the newest block of a relay block, which {hexed(block.hash)}"
            " is not"
        )
    chain = call.chain
    return await attempt(
        call.node.control.aside(lambda live: try_messages(live, moment, chain, todo))
    )


def differences(old: State, new: State) -> Changes:
    """Return the differences between the top tries of two states."""
    return {key: (before, after) for key, before, after in old.top.differences(new.top)}


def try_extrinsic(at: At, raw: bytes, *, signatures: bool = True) -> Changes:
    """Return the changes that an extrinsic makes to the state after the next block.

    The changes of a block without it are not included. Raises `UndecodableExtrinsic` or
    `InvalidTransaction`.
    """
    without = NextBlock(at.runtime, at.state, at.header).end()
    block = NextBlock(at.runtime, at.state, at.header, signatures=signatures)
    block.apply(raw)
    return differences(without, block.end())


def try_call(at: At, call: bytes, who: AccountId) -> Changes:
    """Return the changes that a call by an account would make in the next block.

    The call becomes an extrinsic whose signature is not verified. Raises as `try_extrinsic` does.
    """
    try:
        decoded = at.runtime.calls.decode(call)
    except ScaleError as error:
        raise UndecodableExtrinsic(str(error)) from error
    nonce = NextBlock(at.runtime, at.state, at.header).nonce(who)
    scheme = Scheme.SR25519
    signature = bytes(LENGTH[scheme])
    extrinsic = SignedExtrinsic(who, scheme, signature, Extra(Era(), nonce, 0), decoded, 0)
    return try_extrinsic(at, extrinsic.encode(), signatures=False)


def try_messages(
    live: LiveNetwork, moment: Moment, chain: Chain, todo: Iterable[actions.Action]
) -> Changes:
    """Return the changes of a chain after messages were sent to it by the normal route.

    A branch of the network builds blocks until the messages have arrived. Raises `PubsubError` if
    they cannot be sent or do not arrive.
    """
    branch = live.branch(moment)
    messages = list(todo)
    for message in messages:
        branch.apply(message)
    senders = [message.para for message in messages if isinstance(message, actions.Upward)]
    senders += [message.sender for message in messages if isinstance(message, actions.Horizontal)]
    turns = dict.fromkeys(map(ParaId, senders))

    def have_left(_newest: Moment) -> bool:
        return not _any_waits(branch, messages)

    sent = _until(branch, turns, have_left, "leave their senders")
    if chain is RELAY:
        # The relay chain executes the messages in the block after the one that received them.
        after = branch.step().relay.state
    else:
        arrived = _until(
            branch,
            (chain,),
            lambda newest: _has_seen(newest, chain, sent),
            f"reach parachain {chain}",
        )
        after = arrived.heads[chain].state
    return differences(moment.heads[chain].state, after)


def _any_waits(branch: LiveNetwork, messages: Iterable[actions.Action]) -> bool:
    """Return whether one of the messages has not left its sender yet."""
    for action in messages:
        match action:
            case actions.Upward() if action.message in branch.network.parachain(action.para).upward:
                return True
            case actions.Horizontal():
                wanted = (action.recipient, action.message)
                waiting = branch.network.parachain(action.sender).horizontal
                if any((message.recipient, message.data) == wanted for message in waiting):
                    return True
    return False


def _has_seen(moment: Moment, chain: ParaId, sent: Moment) -> bool:
    """Return whether a parachain's relay parent is the relay block of `sent` or a later one."""
    parent = LAST_RELAY_PARENT.get(Storage(moment.heads[chain].state))
    return parent is not None and parent >= sent.number


def _until(
    branch: LiveNetwork, turns: Iterable[ParaId], done: Callable[[Moment], bool], goal: str
) -> Moment:
    """Build relay blocks until `done` returns true, and return the last moment.

    The parachains in `turns` have a turn in each block. Raises `BadRequest`, which names the
    `goal`, if `done` is still false after `MOST_STEPS` blocks.
    """
    for _ in range(MOST_STEPS):
        for para in turns:
            branch.apply(actions.Turn(para=para))
        moment = branch.step()
        if done(moment):
            return moment
    raise BadRequest(f"the messages did not {goal} in {MOST_STEPS} relay blocks")


def difference(at: At, changes: Changes) -> dict[str, object]:
    """Return the old values (`old`), the new values (`new`), and their difference (`delta`).

    Values are in the form `{pallet: {item: value}}`, and those of a map `{pallet: {item: {key:
    value}}}`.
    """
    old: dict[str, object] = {}
    new: dict[str, object] = {}
    for key, (old_value, new_value) in changes.items():
        if old_value is not None:
            _put(old, at, key, old_value)
        if new_value is not None:
            _put(new, at, key, new_value)
    return {"old": old, "new": new, "delta": delta(old, new)}


def _put(document: dict[str, Any], at: At, key: bytes, value: bytes) -> None:
    """Add a value to a nested document by its pallet, item and keys.

    A value that cannot be decoded is added by its hexadecimal key.
    """
    row = parse_row(at, key, value)
    if row is None:
        document[hexed(key)] = hexed(value)
        return
    *outer, last = (str(name) for name in (row["section"], row["method"], *row["key"]))
    for name in outer:
        document = document.setdefault(name, {})
    document[last] = row["value"]


def _digest_item(value: object) -> DigestItem:
    """Read a digest item from hexadecimal digits."""
    reader = Reader(hexadecimal(value))
    try:
        item = read_digest_item(reader)
        reader.end()
    except ScaleError as error:
        raise ValueError(str(error)) from None
    return item


_NO_ROOT: Final = Hash(bytes(32))
_HEADER: Final = fields(
    partial(Header, state_root=_NO_ROOT, extrinsics_root=_NO_ROOT, digest=()),
    {
        "parentHash": block_hash,
        "number": height,
        "stateRoot": block_hash,
        "extrinsicsRoot": block_hash,
        "digest": fields(lambda logs=(): tuple(logs), {"logs": list_of(_digest_item)}),
    },
    ("parentHash", "number"),
)
"""Reads a header. Only the parent and the number are required."""
_BLOCK: Final = {"header": _HEADER, "extrinsics": list_of(hexadecimal)}


@dataclass(frozen=True, slots=True)
class RunBlock:
    """Parameters of `dev_runBlock`."""

    block: tuple[Header, list[bytes]]
    """The header and the extrinsics."""
    parent: bytes | None = None
    """The hash of the block to run on. The default is the parent in the header."""
    include_raw: bool = True
    """Whether the answer has keys and values as bytes."""
    include_parsed: bool = False
    """Whether the answer has decoded keys and values."""
    include_block_details: bool = False
    """Whether the answer has the time, events and extrinsics of the block."""


_OPTIONS: Final = dict.fromkeys(("includeRaw", "includeParsed", "includeBlockDetails"), boolean)
_BLOCK_OF: Final = fields(lambda header, extrinsics: (header, extrinsics), _BLOCK, _BLOCK)
_RUN_BLOCK: Final = fields(
    RunBlock, {"parent": block_hash, "block": _BLOCK_OF, **_OPTIONS}, ("block",)
)


@method("dev_runBlock", Param("config", _RUN_BLOCK), unsafe=True)
async def run(call: RpcCall, config: RunBlock) -> Json:
    """Run a block again and return the storage that each of its parts writes.

    `stateRoot` is the root of the resulting state. It is not compared with that in the header.
    """
    header, body = config.block
    parent = call.block(config.parent or header.parent_hash)
    at = call.node.at(parent)
    try:
        run = await call.node.control.aside(lambda _: run_block(at, header, body))
    except CannotRun as error:
        raise refused(error) from error
    after = replace(at, header=header, state=run.state)
    answer: dict[str, object] = {
        "phases": [
            _phase(after, phase, raw=config.include_raw, parsed=config.include_parsed)
            for phase in run.phases
        ],
        "stateRoot": hexed(run.state.root()),
    }
    if config.include_block_details:
        pairs = zip(body, run.successes, strict=True)
        extrinsics = [{**decode_extrinsic(at, raw), "success": success} for raw, success in pairs]
        time = str(NOW.get(Storage(after.state)))
        answer["blockDetails"] = {
            "timestamp": time,
            "events": decode_events(after),
            "extrinsics": extrinsics,
        }
    return answer


def _phase(after: At, phase: Phase, *, raw: bool, parsed: bool) -> dict[str, object]:
    """Return a phase of a block as JSON, in the form of Chopsticks' `dev_runBlock`."""
    rows = []
    for key, value in phase.writes.items():
        row: dict[str, object] = {}
        if raw:
            row["raw"] = {"key": hexed(key), "value": maybe_hexed(value)}
        decoded = parse_row(after, key, value) if parsed else None
        if decoded is not None:
            row["parsed"] = decoded
        rows.append(row)
    return {"phase": phase.phase, "storageDiff": rows, "logs": []}
