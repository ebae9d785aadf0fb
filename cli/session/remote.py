"""A session over a node that runs elsewhere, by JSON-RPC.

Commands that read storage and events work on any Substrate node. Commands about publishers, candidates and ledgers need
a node of `pubsub serve`; commands that change something need one started with `--dev`.
"""

import asyncio
import json
import shlex
from collections.abc import Generator, Iterator, Mapping
from typing import Any, Final, Self

from pubsub_emulator.cli.pages import Doing, Grid, Line, Shown, words
from pubsub_emulator.cli.session.command import Command, CommandError, Given, Kind, Parameter, look, near_to
from pubsub_emulator.cli.session.session import hexadecimal, number, value
from pubsub_emulator.client.errors import NodeRefused
from pubsub_emulator.client.node import SubstrateNode
from pubsub_emulator.client.rpc import Rpc, connect

METHOD_NOT_FOUND: Final = -32601
MOST_BLOCKS: Final = 10_000
_PARA: Final = "a parachain's id is a whole number"
_CHAIN_WANTED: Final = "a chain is `relay` or a parachain's id"
_HEIGHT_WANTED: Final = "BLOCK is a relay block's number"


class Remote:
    """A context for commands over the node at a ws:// or http:// URL. Raises `ClientError` if no node answers."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self.over = False
        """Whether the user has asked to leave."""
        self._runner = asyncio.Runner()
        self._open: dict[str, Rpc] = {}
        self.name = ""

    def __enter__(self) -> Self:
        try:
            self.name = str(self.ask("system_chain"))
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection."""
        for rpc in self._open.values():
            self._runner.run(rpc.__aexit__(None, None, None))
        self._runner.close()

    def execute(self, line: str) -> Generator[Shown]:
        """Execute a line. Raises `CommandError`, `ClientError`."""
        try:
            found = shlex.split(line, comments=True)
        except ValueError as error:
            raise CommandError(f"{error} in: {line.strip()}") from error
        if not found:
            return
        command = find(found[0])
        try:
            yield from command.run(self, command.read(found[1:]))
        except NodeRefused as error:
            if error.code != METHOD_NOT_FOUND:
                raise
            raise CommandError(
                f"{self.url} does not offer this: {error}; start it with `pubsub serve --dev`"
            ) from error

    def where(self) -> str:
        """The text of a prompt."""
        return f"{self.name} {self.number}"

    @property
    def number(self) -> int:
        """The best block's height."""
        return int(self.ask("chain_getHeader")["number"], 16)

    def complete(self, line: str) -> list[str]:
        """Names of commands."""
        begun = line.split(maxsplit=1)[0] if line.split() else ""
        return [] if " " in line.lstrip() else [each.name for each in COMMANDS if each.name.startswith(begun)]

    def ask(self, method: str, *params: object, chain: str = "relay") -> Any:
        """Call a method of a chain and return its result."""
        return self._runner.run(self._rpc(chain).call(method, *params))

    def node(self, chain: str) -> SubstrateNode:
        """A client that reads a chain by its metadata; `chain` is `relay` or a parachain's id."""
        return SubstrateNode(self._rpc(chain))

    def run(self, work: Any) -> Any:
        """Run a coroutine and return its result."""
        return self._runner.run(work)

    def _rpc(self, chain: str) -> Rpc:
        path = "" if chain == "relay" else f"/{number(chain, _CHAIN_WANTED)}"
        if path not in self._open:
            rpc = connect(self.url + path)
            self._runner.run(rpc.__aenter__())
            self._open[path] = rpc
        return self._open[path]


# How answers are shown


def _cell(found: object) -> str:
    """Write numbers without separators: most are ids and heights, which a user types again."""
    if isinstance(found, int) and not isinstance(found, bool):
        return str(found)
    if isinstance(found, str):
        return found if len(found) <= 70 else f"{found[:66]}…"
    return "" if found is None else _cell(json.dumps(found, ensure_ascii=False))


def _shown(title: str, found: Any) -> Iterator[Shown]:
    """JSON as a table: one row per object of a list, or one row per field."""
    if isinstance(found, list) and found and all(isinstance(each, Mapping) for each in found):
        header = tuple(dict.fromkeys(name for each in found for name in each))
        yield Grid(title, header, tuple(tuple(_cell(each.get(name)) for name in header) for each in found))
    elif isinstance(found, Mapping):
        yield Grid(title, ("field", "value"), tuple((name, _cell(each)) for name, each in found.items()))
    else:
        yield Line(f"{title}: {json.dumps(found, ensure_ascii=False)}")


def _para(given: Given) -> int:
    return number(given.one("PARA"), _PARA)


# Commands


def _status(remote: Remote, _given: Given) -> Iterator[Shown]:
    final = remote.ask("chain_getHeader", remote.ask("chain_getFinalizedHead"))
    yield Line(f"{remote.name} at {remote.url}: best block {remote.number}, final block {int(final['number'], 16)}")


def _step(remote: Remote, given: Given) -> Iterator[Shown]:
    count = number(given.maybe("COUNT") or "1", "COUNT is a number of relay blocks", least=1)
    if count > MOST_BLOCKS:
        raise CommandError(f"one command builds at most {MOST_BLOCKS:,} blocks")
    built = []
    for done in range(count):
        built.append(str(remote.ask("dev_newBlock", {"count": 1})))
        yield Doing("relay blocks built", done + 1, count)
    newest = remote.number
    yield Grid(
        f"{count} relay blocks built",
        ("block", "hash"),
        tuple((str(newest - len(built) + 1 + at), name) for at, name in enumerate(built))[-20:],
    )


def _publish(remote: Remote, given: Given) -> Iterator[Shown]:
    data, ttl = value(given.one("VALUE")), number(given.maybe("TTL") or "0", "TTL is a number of relay blocks")
    remote.ask("pubsub_publish", _para(given), given.one("KEY"), f"0x{data.hex()}", ttl)
    yield Line(f"{_para(given)} publishes {given.one('KEY')} ({len(data)} bytes) with its next block")


def _subscribe(remote: Remote, given: Given) -> Iterator[Shown]:
    para, publisher = _para(given), number(given.one("PUBLISHER"), _PARA)
    held = remote.ask("pubsub_subscriptions", para)
    if held is None:
        raise CommandError(f"there is no parachain {para}")
    items = {each["publisher"]: [key["key"] for key in each["keys"]] for each in held["items"]}
    items[publisher] = [*items.get(publisher, []), *given.many("KEY")]
    wanted = [{"publisher": who, "keys": list(dict.fromkeys(keys))} for who, keys in items.items()]
    version = remote.ask("pubsub_setSubscriptions", para, wanted)["specVersion"]
    yield Line(f"{para} subscribes to {', '.join(given.many('KEY'))} of {publisher} from spec version {version}")


def _cheat(remote: Remote, given: Given) -> Iterator[Shown]:
    found = remote.ask("pubsub_cheat", _para(given), given.one("STRATEGY").split(","))
    yield Line(f"collator {found['collator']} of {found['collators']} cheats: {given.one('STRATEGY')}")


def _honest(remote: Remote, given: Given) -> Iterator[Shown]:
    found = remote.ask("pubsub_honest", _para(given))
    yield Line(f"the {found['collators']} collators of {_para(given)} are honest")


def _publishers(remote: Remote, _given: Given) -> Iterator[Shown]:
    yield from _shown("publishers", remote.ask("pubsub_publishers")["publishers"])


def _entry(remote: Remote, given: Given) -> Iterator[Shown]:
    yield from _shown("entry", remote.ask("pubsub_entry", _para(given), given.one("KEY")))


def _subscriptions(remote: Remote, given: Given) -> Iterator[Shown]:
    found = remote.ask("pubsub_subscriptions", _para(given))
    if found is None:
        raise CommandError(f"there is no parachain {_para(given)}")
    rows = [{"publisher": each["publisher"], **key} for each in found["items"] for key in each["keys"]]
    yield from _shown(f"{_para(given)} at relay parent {found['relayParent']}", rows)


def _ledger(remote: Remote, given: Given) -> Iterator[Shown]:
    yield from _shown("ledger", remote.ask("pubsub_ledger", _para(given)))


def _candidates(remote: Remote, given: Given) -> Iterator[Shown]:
    at = number(given.maybe("BLOCK") or str(remote.number), _HEIGHT_WANTED)
    found = remote.ask("pubsub_candidates", _para(given), at)
    if not found:
        yield Line(f"no candidate of {_para(given)} was judged for relay block {at}")
        return
    yield from _shown(f"candidates for relay block {at}", found)


def _evidence(remote: Remote, given: Given) -> Iterator[Shown]:
    at = number(given.maybe("BLOCK") or str(remote.number), _HEIGHT_WANTED)
    found = [each for each in remote.ask("pubsub_candidates", _para(given), at) or () if each["status"] == "rejected"]
    if not found:
        yield Line(f"no candidate of {_para(given)} was refused for relay block {at}")
    for each in found:
        yield Line(f"block {each['number']} of {each['para']}, {each['hash']}: {each['verdict']}")
        for reason in remote.ask("pubsub_candidate", each["hash"])["evidence"]:
            yield Line(f"  {reason['verdict']}: {reason['detail']}")


async def _block(node: SubstrateNode, height: str | None) -> bytes:
    if height is None:
        return await node.best_head()
    found = await node.block_hash(number(height, "BLOCK is a block's number"))
    if found is None:
        raise CommandError(f"there is no block {height}")
    return found


def _events(remote: Remote, given: Given) -> Iterator[Shown]:
    node = remote.node(given.one("CHAIN"))

    async def read() -> list[Any]:
        return await node.events(await _block(node, given.maybe("BLOCK")))

    rows = tuple((f"{each.pallet}.{each.name}", words(each.fields)) for each in remote.run(read()))
    yield Grid(f"events of {given.one('CHAIN')}", ("event", "fields"), rows)


def _item(remote: Remote, given: Given) -> Iterator[Shown]:
    pallet, dot, name = given.one("ITEM").partition(".")
    if not dot:
        raise CommandError(f"a storage item is Pallet.Item, not {given.one('ITEM')!r}")
    keys = [hexadecimal(key, "a key's SCALE bytes") for key in given.many("KEY")]
    node = remote.node(given.one("CHAIN"))

    async def read() -> Any:
        return await node.item(await node.best_head(), pallet, name, *keys)

    yield Line(f"{given.one('ITEM')}: {words(remote.run(read()))}")


def _snapshot(remote: Remote, _given: Given) -> Iterator[Shown]:
    yield Line(f"saved as {remote.ask('dev_snapshot')}; `revert` goes back to it")


def _revert(remote: Remote, given: Given) -> Iterator[Shown]:
    if not remote.ask("dev_revert", given.one("ID")):
        raise CommandError(f"there is no snapshot {given.one('ID')}")
    yield Line(f"the network is at relay block {remote.number}")


def _head(remote: Remote, given: Given) -> Iterator[Shown]:
    place = given.one("BLOCK")
    remote.ask("dev_setHead", place if place.startswith("0x") else number(place, "BLOCK is a number or a hash"))
    yield Line(f"the network is at relay block {remote.number}")


def _call(remote: Remote, given: Given) -> Iterator[Shown]:
    params = []
    for each in given.many("PARAM"):
        try:
            params.append(json.loads(each))
        except ValueError:
            params.append(each)
    yield from _shown(given.one("METHOD"), remote.ask(given.one("METHOD"), *params))


def _help(_remote: Remote, given: Given) -> Iterator[Shown]:
    name = given.maybe("COMMAND")
    if name is not None:
        yield from (Line(line) for line in find(name).help())
        return
    yield Grid("over a node", ("command", "what it does"), tuple((each.usage(), each.summary) for each in COMMANDS))


def _quit(remote: Remote, _given: Given) -> Iterator[Shown]:
    remote.over = True
    yield from ()


_PARA_PARAMETER: Final = Parameter("PARA", Kind.PARA)
_KEY: Final = Parameter("KEY", Kind.KEY)
_CHAIN: Final = Parameter("CHAIN", Kind.CHAIN)
_HEIGHT: Final = Parameter("BLOCK", Kind.NUMBER, optional=True)

COMMANDS: Final = (
    look("status", "Show the node, its best and its final block.", _status),
    look(
        "step", "Build relay blocks.", _step, (Parameter("COUNT", Kind.NUMBER, optional=True),), ("step 5",), "", ("s",)
    ),
    look(
        "publish",
        "Have a parachain publish a key.",
        _publish,
        (_PARA_PARAMETER, _KEY, Parameter("VALUE", Kind.VALUE), Parameter("TTL", Kind.NUMBER, optional=True)),
        ("publish 1000 DOT/USD 7.42 100",),
    ),
    look(
        "subscribe",
        "Add keys to what a parachain subscribes to.",
        _subscribe,
        (_PARA_PARAMETER, Parameter("PUBLISHER", Kind.PUBLISHER), Parameter("KEY", Kind.KEY, many=True)),
        ("subscribe 2000 1000 DOT/USD",),
    ),
    look(
        "cheat",
        "Have the next honest collator of a parachain cheat.",
        _cheat,
        (_PARA_PARAMETER, Parameter("STRATEGY", Kind.STRATEGY)),
        ("cheat 2000 omit-node",),
    ),
    look("honest", "Make all collators of a parachain honest.", _honest, (_PARA_PARAMETER,), ("honest 2000",)),
    look("publishers", "Show everyone who is registered or has published.", _publishers),
    look("entry", "Show a publisher's entry under a key.", _entry, (_PARA_PARAMETER, _KEY), ("entry 1000 DOT/USD",)),
    look(
        "subscriptions",
        "Show a parachain's subscriptions and what was delivered.",
        _subscriptions,
        (_PARA_PARAMETER,),
        ("subscriptions 2000",),
    ),
    look(
        "ledger",
        "Show what used the bytes of a parachain's newest block.",
        _ledger,
        (_PARA_PARAMETER,),
        ("ledger 2000",),
    ),
    look(
        "candidates",
        "Show the candidates that were judged for a relay block.",
        _candidates,
        (_PARA_PARAMETER, _HEIGHT),
        ("candidates 2000 7",),
    ),
    look(
        "evidence",
        "Show why candidates for a relay block were refused.",
        _evidence,
        (_PARA_PARAMETER, _HEIGHT),
        ("evidence 2000 7",),
    ),
    look(
        "events",
        "Show a block's events, decoded by the chain's metadata.",
        _events,
        (_CHAIN, _HEIGHT),
        ("events relay", "events 2000 3"),
    ),
    look(
        "item",
        "Show a storage item, decoded by the chain's metadata; keys are SCALE bytes.",
        _item,
        (_CHAIN, Parameter("ITEM", Kind.ITEM), Parameter("KEY", Kind.VALUE, optional=True, many=True)),
        ("item relay System.Number",),
    ),
    look("snapshot", "Save a snapshot of the network.", _snapshot),
    look("revert", "Go back to a snapshot.", _revert, (Parameter("ID", Kind.SNAPSHOT),), ("revert 0x1",)),
    look("head", "Go back to a relay block.", _head, (Parameter("BLOCK", Kind.NUMBER),), ("head 5",)),
    look(
        "call",
        "Call any method; parameters are JSON or text.",
        _call,
        (Parameter("METHOD", Kind.NAME), Parameter("PARAM", Kind.VALUE, optional=True, many=True)),
        ("call chain_getBlockHash 0",),
    ),
    look(
        "help",
        "List all commands, or explain one.",
        _help,
        (Parameter("COMMAND", Kind.COMMAND, optional=True),),
        (),
        "",
        ("?",),
    ),
    look("quit", "Leave the session; the node keeps running.", _quit, (), (), "", ("exit", "q")),
)
_BY_NAME: Final[Mapping[str, Command]] = {name: each for each in COMMANDS for name in (each.name, *each.aliases)}


def find(name: str) -> Command:
    """The command of this name. Raises `CommandError` that suggests similar names."""
    command = _BY_NAME.get(name)
    if command is None:
        raise CommandError(f"there is no command {name!r}; {near_to(name, _BY_NAME, '`help` lists all')}")
    return command
