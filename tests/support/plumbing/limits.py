"""Inputs at each limit and beyond it, read in processes of their own.

`python -m support.plumbing.limits` reads lines `CONSTANT at|beyond`, and for each prints a JSON
object: the result, the bytes of the input, and by how many bytes the peak of memory grew. Each
input is read in a fork of the process, which has imported everything.
"""

import asyncio
import contextlib
import gzip
import io
import json
import os
import resource
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, NamedTuple, cast

import aiohttp
import cbor2
from aiohttp import web

from interchain_events.database.opening import open_database
from interchain_events.distributor.adapter.http import AdapterHttp
from interchain_events.distributor.adapter.ledger import SimulatedLedger
from interchain_events.distributor.once import MemoryStore
from interchain_events.distributor.service.access import AccessRights
from interchain_events.distributor.service.adapters import HttpAdapter, Profile
from interchain_events.distributor.service.config import parse_config
from interchain_events.distributor.service.serve import served
from interchain_events.distributor.simulation.network import SimulatedNetwork
from interchain_events.events.filters.algebra import ANY
from interchain_events.events.filters.codec import parse_filters
from interchain_events.events.subscriptions.cursor import Cursor
from interchain_events.events.subscriptions.registry import SqlRegistry
from interchain_events.events.subscriptions.streams import Limits, Streams
from interchain_events.icrc72.ic.candid.decode import Decoder
from interchain_events.icrc72.ic.candid.did import parse_types
from interchain_events.icrc72.ic.candid.encode import leb128
from interchain_events.icrc72.ic.canister import Context
from interchain_events.icrc72.ic.principal import ANONYMOUS
from interchain_events.icrc72.port.envelope import read_request
from interchain_events.icrc72.port.proxy import Proxy
from pubsub_emulator.client.decode import decode
from pubsub_emulator.client.metadata import Array, Metadata, Sequence, Tuple, Type
from pubsub_emulator.client.rpc import connect
from pubsub_emulator.client.state_file import read_state
from pubsub_emulator.emulator.scenario.file import load_bundled, load_scenario, parse_scenario
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.files.readers import all_rows
from pubsub_emulator.files.untrusted import parse_json, read_bytes, read_json
from pubsub_emulator.node.chain import journal
from pubsub_emulator.node.chain.block import RELAY
from pubsub_emulator.node.chain.journal import JournalHead, read_journal
from pubsub_emulator.node.chain.lines import FORMAT
from pubsub_emulator.node.chain.live import LiveNetwork
from pubsub_emulator.node.rpc.dispatch import RpcAnswer
from pubsub_emulator.node.server.options import Options
from pubsub_emulator.node.server.server import Server
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.scale import encode_compact
from pubsub_emulator.session.saved import read_document
from pubsub_emulator.spark_audit.history import manifest
from pubsub_emulator.spark_audit.history.storage import open_store
from pubsub_emulator.xcm.message import decode as decode_message


class Probe(NamedTuple):
    """`make` gives an input of so many units, `read` reads it; `factor` bounds its memory, in bytes
    a byte.
    """

    make: Callable[[int], bytes]
    read: Callable[[bytes], Any]
    factor: int = 12


def _file(read: Callable[[Path], Any]) -> Callable[[bytes], Any]:
    """Return a function that writes an input to a file and lets `read` read it."""

    def read_data(data: bytes) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "input"
            path.write_bytes(data)
            # The peak of memory is measured, and the reader of a file does not hold this copy.
            del data
            return read(path)

    return read_data


def _padded(seed: bytes, size: int) -> bytes:
    return seed + b" " * (size - len(seed))


def _stuffed(document: bytes, size: int) -> bytes:
    """Return a JSON object with one more long text, which is read faster than as many spaces."""
    return document[:-1] + b',"x":"' + b"x" * (size - len(document) - 7) + b'"}'


def _parsed(data: bytes) -> Any:
    return parse_json(data, "input")


TINY: Final = b"""
name = "tiny"
seed = "tiny"
relay_blocks = 8
[[publishers]]
paras = [1000]
keys = 4
[[subscribers]]
para = 3000
subscribe = [{ publishers = "all" }]
"""


def _exported(**more: str) -> bytes:
    number = "0x26aa394eea5630e07c48ae0c9558cef702a5c1b19ab7a04f536c519aca4983ac"
    return json.dumps({"genesis": {"raw": {"top": {number: "0x07000000", **more}}}}).encode()


def _journal_head() -> bytes:
    return JournalHead(load_bundled("node"), 1_000_000).line().encode()


def _journal(path: Path) -> Any:
    return journal.read_journal(read_bytes(path, journal.MOST_BYTES, journal.BadJournal), "journal")


_TURN: Final = b'{"action":{"kind":"turn","para":2000}}'


def _turns(size: int) -> bytes:
    head = _journal_head() + b"\n"
    whole, rest = divmod(size - len(head), 1 << 20)
    line, last = (_stuffed(_TURN, (1 << 20) - 1 + more) + b"\n" for more in (0, rest))
    return head + line * (whole - 1) + last


def _answer(data: bytes) -> Any:
    """Return an HTTP answer, gzipped, as the client reads it."""
    packed = gzip.compress(data, 1)
    del data

    async def run() -> Any:
        async def handle(_request: web.Request) -> web.Response:
            return web.Response(body=packed, headers={"Content-Encoding": "gzip"})

        app = web.Application()
        app.router.add_post("/", handle)
        async with served(app, "127.0.0.1", 0) as url, connect(url) as rpc:
            return await rpc.call("m")

    return asyncio.run(run())


def _request(data: bytes) -> Any:
    """Return the answer of a node. If the request itself is refused, the error is raised."""
    server = Server(LiveNetwork(Simulation(load_bundled("node"), accounts=True)), Options(port=0))
    found = server.dispatcher.handle(data, RELAY, None)
    answer = json.loads(
        (found if isinstance(found, RpcAnswer) else asyncio.run(found.work)).text or "{}"
    )
    if isinstance(answer, dict) and answer.get("error", {}).get("code") in {-32700, -32007, -32010}:
        raise PubsubError(str(answer["error"]))
    return answer


_CALL: Final = b'{"jsonrpc":"2.0","id":1,"method":"system_chain","params":[]}'


def _filters(data: bytes) -> Any:
    return parse_filters(data.decode())


def _text(data: bytes) -> Any:
    return parse_scenario(data.decode(), "input")


def _chains(count: int) -> bytes:
    """Return a scenario with this many parachains."""
    paras = str(list(range(10_000, 10_000 + count - 1))).encode()
    return (
        TINY.replace(b"[1000]", paras).replace(b"keys = 4", b"keys = 1")
        + b"[relay]\nmax_publishers = 9000\n"
    )


def _networks(count: int) -> bytes:
    head = b'public_url = "http://127.0.0.1:1"\n'
    return head + b"".join(
        b'[adapters.n%d]\nurl = "http://127.0.0.1:2"\n' % at for at in range(count)
    )


_SEGMENT: Final = {"network": "a", "segment": 0, "files": [], "next_positions": {}}


def _manifest(size: int) -> bytes:
    body = {"format": manifest.FORMAT, "previous": None, **_SEGMENT}
    return _padded(
        json.dumps({**body, "digest": manifest.digest_of(manifest.canonical_json(body))}).encode(),
        size,
    )


def _read_manifest(data: bytes) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / manifest.COMMITS / "a"
        path.parent.mkdir()
        path.write_bytes(data)
        try:
            return manifest.read_any_manifest(open_store(folder), "a")
        except OSError as error:  # a fault of the history
            raise PubsubError(str(error)) from error


def _session(commands: int, block: int) -> bytes:
    document = {
        "format": FORMAT,
        "scenario": {},
        "commands": ["step"] * commands,
        "block": block,
        "hash": "",
    }
    return json.dumps(document).encode()


def _decoded(types: dict[int, Type]) -> Callable[[bytes], Any]:
    return lambda data: decode(Metadata(types, {}, {}, 0), 0, data)


def _withdraw(assets: int) -> bytes:
    """Return a message of one instruction that withdraws assets of parents 0, 1, 2 and so on."""
    each = b"".join(bytes((at, 0, 0, 4)) for at in range(assets))
    return bytes((5, 4, 0)) + encode_compact(assets) + each


def _leb(number: int) -> bytes:
    out = bytearray()
    leb128(number, out)
    return bytes(out)


def _request_of(levels: int) -> bytes:
    """Return a request to a canister with this many levels of lists and maps in its envelope."""
    nonce: list[Any] = []
    for _ in range(levels - 2):
        nonce = [nonce]
    call = {
        "request_type": "call",
        "canister_id": b"\0",
        "method_name": "m",
        "arg": b"",
        "ingress_expiry": 2,
    }
    return cbor2.dumps({"content": {**call, "sender": bytes(ANONYMOUS), "nonce": nonce}})


def _subscribed(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        registry = SqlRegistry(open_database(f"{folder}/a.db"))
        for _ in data:
            registry.add([ANY], Cursor(0, 0), "a")


def _opened(*, own: bool = False, reads_all: bool = False) -> Callable[[bytes], None]:
    """Return a function that opens a stream for each byte, of one client (`own`) or of one each."""
    limits = Limits() if own or not reads_all else replace(Limits(), streams=10_000)

    def of(data: bytes) -> None:
        streams = Streams(limits)
        with contextlib.ExitStack() as held:
            for at in range(len(data)):
                held.enter_context(streams.held("a" if own else f"{at}", reads_all=reads_all))

    return of


def _kept(data: bytes) -> None:
    """Let a proxy store a message for each byte. Raises `PubsubError` if it drops one."""
    proxy, message = Proxy(), SimpleNamespace(caller=ANONYMOUS, reply=bytes)
    for _ in data:
        proxy.update(cast("Context", message), "m", b"")
    if proxy.dropped:
        raise PubsubError("dropped")


def _adapter_answer(data: bytes) -> None:
    """Let a client of adapters read this answer. Raises `PubsubError` if it refuses it."""

    async def run() -> object:
        async def handle(_request: web.Request) -> web.Response:
            return web.Response(body=data)

        app = web.Application()
        app.router.add_get("/", handle)
        async with served(app, "127.0.0.1", 0) as url, aiohttp.ClientSession() as http:
            return await HttpAdapter(url, Profile(), http)._send("GET", f"{url}/")

    if asyncio.run(run()) is None:
        raise PubsubError("no answer")


def _posted(data: bytes) -> Any:
    """Publish through an adapter. Raises `PubsubError` if the publication is too long."""

    async def run() -> int:
        ledger = SimulatedLedger(SimulatedNetwork("a"))
        app = AdapterHttp("a", ledger, MemoryStore(), AccessRights(everyone=True)).application()
        async with served(app, "127.0.0.1", 0) as url, aiohttp.ClientSession() as http:
            made = {"Content-Type": "application/json"}
            async with http.post(
                f"{url}/api/v2/publishEvent", data=io.BytesIO(data), headers=made
            ) as answer:
                return answer.status

    if asyncio.run(run()) == 413:
        raise PubsubError("413")


async def _unread(count: int) -> None:
    queue: list[Any] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        asked = await socket.receive_json()
        await socket.send_json({"id": asked["id"], "result": "s"})
        said = json.dumps({"method": "m", "params": {"subscription": "s", "result": 1}})
        for _ in range(count):
            await socket.send_str(said)
        async for message in socket:
            await socket.send_json({"id": message.json()["id"], "result": 1})
        return socket

    app = web.Application()
    app.router.add_get("/", handle)
    async with (
        served(app, "127.0.0.1", 0) as url,
        connect(url.replace("http", "ws")) as rpc,
        rpc.subscribe("m", "u") as found,
    ):
        await rpc.call("wait")
        async for each in found:
            queue.append(each)
            if len(queue) == count:
                return


_COMPUTE: Final = 2000
"""Bytes of memory a byte where an input is small and what it names is not."""

PROBES: Final[dict[str, Probe]] = {
    "pubsub_emulator.files.untrusted:MOST_DEPTH": Probe(
        lambda size: b"[" * size + b"]" * size, _parsed
    ),
    "pubsub_emulator.files.untrusted:MOST_VALUES": Probe(
        lambda size: b"[" + b"1," * (size - 1) + b"1]", _parsed
    ),
    "pubsub_emulator.files.untrusted:MOST_BYTES": Probe(
        lambda size: _stuffed(b'{"a":1}', size), _file(read_json)
    ),
    "pubsub_emulator.files.untrusted:MOST_TEXT": Probe(
        lambda size: _padded(TINY, size), _file(load_scenario), 40
    ),
    "pubsub_emulator.client.state_file:MOST_BYTES": Probe(
        lambda size: _stuffed(_exported(), size), _file(read_state)
    ),
    "pubsub_emulator.client.state_file:LONGEST_KEY": Probe(
        lambda size: _exported(**{f"0x{'11' * size}": "0x00"}), _file(read_state)
    ),
    "pubsub_emulator.client.rpc:MAX_MESSAGE": Probe(
        lambda size: _stuffed(b'{"jsonrpc":"2.0","id":1,"result":"0x00"}', size), _answer
    ),
    "pubsub_emulator.client.rpc:MAX_WAITING": Probe(
        lambda count: count.to_bytes(4, "big"),
        lambda data: asyncio.run(_unread(int.from_bytes(data, "big"))),
    ),
    "pubsub_emulator.client.decode:MAX_DEPTH": Probe(
        lambda size: b"\4" * size + b"\0", _decoded({0: Sequence(0)})
    ),
    "pubsub_emulator.client.decode:FREE_VALUES": Probe(
        lambda count: (count - 1).to_bytes(4, "big"),
        lambda data: _decoded({0: Array(1, int.from_bytes(data, "big")), 1: Tuple(())})(b""),
    ),
    "pubsub_emulator.session.saved:MOST_COMMANDS": Probe(
        lambda count: _session(count, 1), _file(read_document), 40
    ),
    "pubsub_emulator.session.saved:MOST_BLOCKS": Probe(
        lambda count: _session(1, count), _file(read_document)
    ),
    "pubsub_emulator.spark_audit.history.manifest:MOST_BYTES": Probe(_manifest, _read_manifest),
    "pubsub_emulator.xcm.assets:MAX_ITEMS_IN_ASSETS": Probe(_withdraw, decode_message),
    "pubsub_emulator.node.chain.journal:MOST_BYTES": Probe(_turns, _file(_journal)),
    "pubsub_emulator.node.chain.journal:MOST_LINE": Probe(
        lambda size: _journal_head() + b"\n" + _padded(_TURN, size) + b"\n",
        lambda data: read_journal(data, "journal"),
    ),
    "pubsub_emulator.node.rpc.dispatch:REQUEST.bytes": Probe(
        lambda size: _padded(_CALL, size), _request
    ),
    "pubsub_emulator.node.rpc.dispatch:REQUEST.depth": Probe(
        lambda size: _CALL.replace(b"[]", b"[" * (size - 1) + b"]" * (size - 1)), _request
    ),
    "pubsub_emulator.node.rpc.dispatch:REQUEST.values": Probe(
        lambda size: _CALL.replace(b"[]", b"[" + b"1," * (size - 5) + b"1]"), _request
    ),
    "pubsub_emulator.node.rpc.dispatch:REQUEST.batch": Probe(
        lambda size: b"[" + b",".join([_CALL] * size) + b"]", _request, 4000
    ),
    "pubsub_emulator.emulator.scenario.check:MOST_CHAINS": Probe(_chains, _text, _COMPUTE),
    "pubsub_emulator.emulator.scenario.check:MOST_KEYS": Probe(
        lambda count: TINY.replace(b"keys = 4", b"keys = %d" % count), _text, _COMPUTE
    ),
    "pubsub_emulator.emulator.scenario.check:MOST_BLOCKS": Probe(
        lambda count: TINY + b"blocks_per_relay_block = %d\n" % count, _text, _COMPUTE
    ),
    "pubsub_emulator.emulator.scenario.check:MOST_MESSAGES": Probe(
        lambda count: (
            TINY + b"load = [{ first_block = 1, last_block = 2, downward_messages = %d }]\n" % count
        ),
        _text,
        _COMPUTE,
    ),
    "interchain_events.events.filters.codec:MAX_BYTES": Probe(
        lambda size: _padded(b'[{"any":true}]', size), _filters
    ),
    "interchain_events.events.filters.algebra:MAX_DEPTH": Probe(
        lambda levels: (
            b"[" + b'{"not":' * (levels - 1) + b'{"kind":"a.b"}' + b"}" * (levels - 1) + b"]"
        ),
        _filters,
    ),
    "interchain_events.events.filters.algebra:MAX_FILTERS": Probe(
        lambda count: b"[" + b",".join([b'{"any":true}'] * count) + b"]", _filters
    ),
    "interchain_events.events.subscriptions.registry:PER_CLIENT": Probe(bytes, _subscribed),
    "interchain_events.events.subscriptions.streams:Limits.streams_per_client": Probe(
        bytes, _opened(own=True)
    ),
    "interchain_events.events.subscriptions.streams:Limits.streams": Probe(bytes, _opened()),
    "interchain_events.events.subscriptions.streams:Limits.full_reads": Probe(
        bytes, _opened(reads_all=True)
    ),
    "interchain_events.distributor.service.config:MOST_NETWORKS": Probe(
        _networks, lambda data: parse_config(data, "input"), _COMPUTE
    ),
    "interchain_events.distributor.service.problems:MOST_BODY": Probe(
        lambda size: _padded(b"{}", size), _posted
    ),
    "interchain_events.distributor.service.adapters:MOST_ANSWER": Probe(bytes, _adapter_answer),
    "interchain_events.icrc72.port.envelope:MOST_DEPTH": Probe(
        _request_of, lambda data: read_request(data, "call", 1)
    ),
    "interchain_events.icrc72.port.proxy:MOST_KEPT": Probe(bytes, _kept),
    "interchain_events.icrc72.ic.candid.wire:DEPTH": Probe(
        lambda levels: b"DIDL\x01\x6e\0\x01\0" + b"\1" * levels + b"\0",
        Decoder(parse_types("(reserved)")).decode,
    ),
    "interchain_events.icrc72.ic.candid.wire:SPARE": Probe(
        lambda count: b"DIDL\x01\x6d\x7f\x01\0" + _leb(count + 16 * 12 - 1),
        Decoder(parse_types("(vec null)")).decode,
    ),
}

_ALLOWANCE: Final = 256 << 20
"""Bytes of what a reader imports, and of the smallest things."""


def limits() -> dict[str, int]:
    """Return every limit of the table by its constant."""
    return {limit.constant: limit.value() for row in all_rows() for limit in row.limits}


def most(constant: str, data: int) -> int:
    """Return by how many bytes the peak of memory may grow for an input of this size."""
    return PROBES[constant].factor * data + _ALLOWANCE


def main() -> None:
    """Read the inputs that are asked for."""
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _read(*line.split())
            sys.stdout.flush()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            sys.stdout.write(
                json.dumps({"said": f"it was killed: {status}", "size": 0, "grown": 0}) + "\n"
            )
            sys.stdout.flush()


def _read(constant: str, where: str) -> None:
    probe = PROBES[constant]
    data = probe.make(limits()[constant] + (where == "beyond"))
    size = len(data)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    try:
        probe.read(data)
        said = ""
    except Exception as error:  # noqa: BLE001  # the parent judges it
        said = f"{type(error).__module__}.{type(error).__name__}: {error}"[:300]
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10) - before
    sys.stdout.write(json.dumps({"said": said, "size": size, "grown": grown}) + "\n")


if __name__ == "__main__":
    main()
