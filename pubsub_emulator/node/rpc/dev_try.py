"""`dev_dryRun` and `dev_runBlock` (`--dev`): what would happen, and what happened in a block; nothing is kept."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pubsub_emulator.emulator.network import actions
from pubsub_emulator.node.api.runs import CannotRun, Phase, Run, run_block
from pubsub_emulator.node.api.trials import Changes, try_call, try_extrinsic, try_messages
from pubsub_emulator.node.at import At
from pubsub_emulator.node.chain.block import RELAY, Block
from pubsub_emulator.node.rpc.call import Call
from pubsub_emulator.node.rpc.dev import attempt, hrmp_messages, messages_of, refuse, upward_messages
from pubsub_emulator.node.rpc.encode import maybe_hexed
from pubsub_emulator.node.rpc.errors import development
from pubsub_emulator.node.rpc.method import Json, Methods
from pubsub_emulator.node.rpc.params import Param, Read, block_hash, boolean, height, hexadecimal, list_of, text
from pubsub_emulator.node.types import decode_events, decode_extrinsic, parse_row
from pubsub_emulator.node.types.delta import delta
from pubsub_emulator.primitives.errors import PubsubError, ScaleError
from pubsub_emulator.primitives.header import DigestItem, Header, read_digest_item
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.scale import Reader
from pubsub_emulator.primitives.ss58 import BadAddress, decode_address
from pubsub_emulator.primitives.types import AccountId, Hash
from pubsub_emulator.runtime.accounts.timestamp import NOW
from pubsub_emulator.runtime.framework.storage import Storage

methods: Final = Methods()
method = methods.method


def _fields(value: object, known: Mapping[str, Read[object]]) -> dict[str, Any]:
    """An object's fields, each read as `known` says, `None` for those that lack. Raises `ValueError`."""
    if not isinstance(value, dict):
        raise ValueError("an object is wanted")
    for name in value:
        if name not in known:
            raise ValueError(f"there is no {name!r}; there are {', '.join(known)}")
    out: dict[str, Any] = dict.fromkeys(known)
    for name, given in value.items():
        if given is not None:
            try:
                out[name] = known[name](given)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
    return out


# Dry runs


@dataclass(frozen=True, slots=True)
class _Unsigned:
    """A call, and whose it would be."""

    call: bytes
    who: AccountId


def _account(value: object) -> AccountId:
    try:
        found = hexadecimal(value) if str(value).startswith("0x") else decode_address(text(value))
    except BadAddress as error:
        raise ValueError(str(error)) from error
    if len(found) != 32:
        raise ValueError(f"an account has 32 bytes, not {len(found)}")
    return AccountId(found)


def _extrinsic(value: object) -> bytes | _Unsigned:
    if not isinstance(value, dict):
        return hexadecimal(value)
    given = _fields(value, {"call": hexadecimal, "address": _account})
    for name, found in given.items():
        if found is None:
            raise ValueError(f"{name} is missing")
    return _Unsigned(given["call"], given["address"])


_MESSAGES: Final = ("ump", "dmp", "hrmp")
_DRY_RUN: Final = {
    "extrinsic": _extrinsic,
    "ump": upward_messages,
    "dmp": messages_of("msg"),
    "hrmp": hrmp_messages,
    "raw": boolean,
    "html": boolean,
    "at": block_hash,
}


@method("dev_dryRun", Param("config", lambda value: _fields(value, _DRY_RUN)), unsafe=True)
async def dry_run(call: Call, config: dict[str, Any]) -> Json:
    """Changes that an extrinsic or messages would make: old and new values, and jsondiffpatch's delta."""
    wanted = [name for name in ("extrinsic", *_MESSAGES) if config[name] is not None]
    if len(wanted) != 1:
        raise refuse(f"one of extrinsic, ump, dmp and hrmp is tried at a time, not {' and '.join(wanted) or 'none'}")
    block = call.block(config["at"])
    at = call.node.runtimes.at(block)
    if wanted == ["extrinsic"]:
        changes = _tried(at, config["extrinsic"])
    else:
        changes = await _sent(call, block, _actions(call, wanted[0], config[wanted[0]]))
    if config["raw"]:
        return [[hexed(key), maybe_hexed(new)] for key, (_, new) in changes.items()]
    shown = difference(at, changes)
    if not config["html"]:
        return shown
    if call.node.draw is None:
        raise refuse("this node draws no pages")
    return call.node.draw(f"{call.node.chain_name(call.chain)}, after block {block.number}", shown)


def _tried(at: At, extrinsic: bytes | _Unsigned) -> Changes:
    try:
        if isinstance(extrinsic, _Unsigned):
            return try_call(at, extrinsic.call, extrinsic.who)
        return try_extrinsic(at, extrinsic)
    except PubsubError as error:
        raise development(error) from error


def _actions(call: Call, kind: str, given: Any) -> list[actions.Action]:
    chain = call.chain
    if chain is RELAY:
        if kind != "ump":
            raise refuse("dmp and hrmp go to a parachain: call its path")
        return [actions.Upward(para=sender, message=each) for sender, messages in given for each in messages]
    if kind == "ump":
        raise refuse("ump goes to the relay chain: call its path")
    if kind == "dmp":
        return [actions.Downward(para=chain, message=message) for message in given]
    return [
        actions.Horizontal(sender=sender, recipient=chain, message=each)
        for sender, messages in given
        for each in messages
    ]


async def _sent(call: Call, block: Block, todo: list[actions.Action]) -> Changes:
    moment = call.node.timeline.moment_of(block)
    if moment is None or moment.heads[call.chain] is not block:
        raise refuse(f"messages are tried on the newest block of a relay block, which {hexed(block.hash)} is not")
    chain = call.chain
    return await attempt(call.node.control.aside(lambda live: try_messages(live, moment, chain, todo)))


def difference(at: At, changes: Changes) -> dict[str, object]:
    """Changes as `{pallet: {item: value}}` before and after; keys of maps nest below their item."""
    old: dict[str, object] = {}
    new: dict[str, object] = {}
    for key, (before, after) in changes.items():
        for into, value in ((old, before), (new, after)):
            if value is not None:
                _put(into, at, key, value)
    return {"old": old, "new": new, "delta": delta(old, new)}


def _put(into: dict[str, Any], at: At, key: bytes, value: bytes) -> None:
    row = parse_row(at, key, value)
    if row is None:
        into[hexed(key)] = hexed(value)
        return
    way = [row["section"], row["method"], *(each if isinstance(each, str) else f"{each}" for each in row["key"])]
    for name in way[:-1]:
        into = into.setdefault(name, {})
    into[way[-1]] = row["value"]


# Blocks


def _digest_item(value: object) -> DigestItem:
    reader = Reader(hexadecimal(value))
    try:
        item = read_digest_item(reader)
        reader.end()
    except ScaleError as error:
        raise ValueError(str(error)) from None
    return item


def _header(value: object) -> Header:
    known = {
        "parentHash": block_hash,
        "number": height,
        "stateRoot": block_hash,
        "extrinsicsRoot": block_hash,
        "digest": lambda given: _fields(given, {"logs": list_of(_digest_item)}),
    }
    found = _fields(value, known)
    for name in ("parentHash", "number"):
        if found[name] is None:
            raise ValueError(f"{name} is missing")
    empty = bytes(32)
    return Header(
        Hash(found["parentHash"]),
        found["number"],
        Hash(found["stateRoot"] or empty),
        Hash(found["extrinsicsRoot"] or empty),
        tuple((found["digest"] or {}).get("logs") or ()),
    )


def _block(value: object) -> tuple[Header, list[bytes]]:
    found = _fields(value, {"header": _header, "extrinsics": list_of(hexadecimal)})
    for name, given in found.items():
        if given is None:
            raise ValueError(f"{name} is missing")
    return found["header"], found["extrinsics"]


_RUN_BLOCK: Final = {
    "parent": block_hash,
    "block": _block,
    "includeRaw": boolean,
    "includeParsed": boolean,
    "includeBlockDetails": boolean,
}


@method("dev_runBlock", Param("config", lambda value: _fields(value, _RUN_BLOCK)), unsafe=True)
async def run(call: Call, config: dict[str, Any]) -> Json:
    """Run a block again and tell what each of its parts wrote; `stateRoot` is what it led to."""
    if config["block"] is None:
        raise refuse("block is missing")
    header, body = config["block"]
    parent = call.block(config["parent"] or header.parent_hash)
    at = call.node.runtimes.at(parent)
    try:
        done = await call.node.control.aside(lambda _: run_block(at, header, body))
    except CannotRun as error:
        raise development(error) from error
    after = At(at.relay, header, done.state, at.genesis)
    raw = config["includeRaw"] is not False
    parsed = bool(config["includeParsed"])
    out: dict[str, object] = {
        "phases": [_phase(after, each, raw=raw, parsed=parsed) for each in done.phases],
        "stateRoot": hexed(done.state.root()),
    }
    if config["includeBlockDetails"]:
        out["blockDetails"] = _details(at, after, body, done)
    return out


def _phase(after: At, phase: Phase, *, raw: bool, parsed: bool) -> dict[str, object]:
    rows = []
    for key, value in phase.writes.items():
        row: dict[str, object] = {}
        if raw:
            row["raw"] = {"key": hexed(key), "value": maybe_hexed(value)}
        if parsed:
            found = parse_row(after, key, value)
            if found is not None:
                row["parsed"] = found
        rows.append(row)
    return {"phase": phase.phase, "storageDiff": rows, "logs": []}


def _details(before: At, after: At, body: list[bytes], done: Run) -> dict[str, object]:
    extrinsics = [
        {**decode_extrinsic(before, raw), "success": success} for raw, success in zip(body, done.successes, strict=True)
    ]
    return {
        "timestamp": str(NOW.get(Storage(after.state))),
        "events": decode_events(after),
        "extrinsics": extrinsics,
    }
