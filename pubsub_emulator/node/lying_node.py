"""A node that lies to the commands that read a node (`pubsub fuzz --target lying-node`).

An input is a transcript of the answers that one command received from an honest node: `[command,
[[path, method, answer], …]]`. The fuzzer changes values, their order and their bytes, and the
command then reads a node with these answers.
"""

import asyncio
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final, TypeVar

from pubsub_emulator.client.errors import NodeRefused
from pubsub_emulator.emulator.network import Network
from pubsub_emulator.emulator.scenario.file import load_bundled
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.files.untrusted import parse_json
from pubsub_emulator.laboratory.mutation import target
from pubsub_emulator.primitives.errors import DefensiveFailure, PubsubError
from pubsub_emulator.primitives.types import ParaId, PubsubKey

BLOCKS: Final = 4
MOST_REQUESTS: Final = 2_000
"""The maximum number of requests of one command. One that makes more is considered endless."""
_SUBMIT: Final = "author_submitExtrinsic"
_RULES: Final = ("PS-1", "PS-16", "PS-31")
_EXTRINSIC: Final = "$extrinsic"
"""Stands in a transcript for the extrinsic that was sent last, because signatures differ each time.
"""
_LONG: Final = 20_000
"""The maximum length of a text in a transcript. A longer one, such as metadata, is replaced by a
name, because it would otherwise receive most of the changes.
"""
_NAMED: Final[dict[str, object]] = {}
"""The replaced texts by their names."""

_Read = TypeVar("_Read", bound=Callable[[str], str])
COMMANDS: Final[dict[str, Callable[[str], str]]] = {}
"""The commands that read a node, by name. Each gets a URL and returns a short result."""

Answers = Callable[[str, str, list[object]], object]
"""Returns a node's answer at a path to a method with parameters."""


def reads_a_node(name: str) -> Callable[[_Read], _Read]:
    """Declare a function as a command that reads a node, whose URL is its argument."""

    def keep(read: _Read) -> _Read:
        COMMANDS[name] = read
        return read

    return keep


class _Handler(BaseHTTPRequestHandler):
    """Answers each JSON-RPC request over HTTP with `answers`."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    answers: Answers = staticmethod(lambda _path, _method, _params: None)
    """The answers of the present command's node. Commands run one after another."""

    def do_POST(self) -> None:  # `http.server` calls this name
        """Answer a request. A `PubsubError` becomes a JSON-RPC error."""
        query = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        document: dict[str, object] = {"jsonrpc": "2.0", "id": query["id"]}
        try:
            document["result"] = type(self).answers(self.path, query["method"], query["params"])
        except PubsubError as error:
            document["error"] = {"code": getattr(error, "code", -32603), "message": str(error)}
        data = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name in the base class
        """Do not log requests."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore errors, because a command that refuses an answer closes its connection."""


@cache
def _url() -> str:
    """Start the server, which runs until the process ends, and return its URL."""
    server = _Server(("127.0.0.1", 0), _Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


def _answering(answers: Answers) -> str:
    """Let the server give these answers from now on, and return its URL."""
    _Handler.answers = staticmethod(answers)
    return _url()


@reads_a_node("export-state")
def _export(url: str) -> str:
    from pubsub_emulator.client.fork import open_fork
    from pubsub_emulator.client.state_file import write_state

    with tempfile.TemporaryDirectory(prefix="pubsub-fuzz-") as folder, open_fork(url) as fork:
        return f"{min(write_state(fork, Path(folder) / 'state.json'), 500)} entries"


@reads_a_node("fork")
def _fork(url: str) -> str:
    from pubsub_emulator.client.fork import open_fork

    wanted: dict[int, dict[int, list[PubsubKey]]] = {2000: {1000: [PubsubKey(bytes(32))]}}
    with open_fork(url) as fork:
        return f"{len(Network.of([ParaId(1000)], wanted, fork=fork).step(2))} steps"


@reads_a_node("conform")
def _conform(url: str, patience: float = 0.05) -> str:
    from pubsub_emulator.client.conform import Mapping, Trial, conform

    with Trial(url, Mapping(patience=patience, delay=4), {}) as trial:
        return ", ".join(finding.verdict for finding in conform(trial, _RULES))


@contextmanager
def _served() -> Iterator[Answers]:
    """Yield the answers of a node that builds a block for each extrinsic."""
    from pubsub_emulator.client.live_state import BlockingNode
    from pubsub_emulator.node.chain.live import LiveNetwork
    from pubsub_emulator.node.server.options import Options
    from pubsub_emulator.node.server.server import Server

    loop = asyncio.new_event_loop()
    Thread(target=loop.run_forever, daemon=True).start()
    serving = Server(
        LiveNetwork(Simulation(load_bundled("node"), accounts=True)), Options(port=0)
    ).serving()
    with ExitStack() as stack:
        stack.callback(loop.call_soon_threadsafe, loop.stop)
        places = asyncio.run_coroutine_threadsafe(serving.__aenter__(), loop).result()
        stack.callback(
            lambda: asyncio.run_coroutine_threadsafe(
                serving.__aexit__(None, None, None), loop
            ).result()
        )
        nodes = {f"/{place.chain or ''}": BlockingNode(place.url) for place in places}
        for node in nodes.values():
            stack.callback(node.close)
        yield lambda path, method, params: nodes[path].ask(method, *params)


def _transcripts() -> Iterable[bytes]:
    """Return a transcript of each command on an honest node."""
    from pubsub_emulator.node.local import LocalNode
    from pubsub_emulator.node.rpc.errors import RpcError

    node = LocalNode(Simulation(load_bundled("node"), accounts=True))
    node.call("dev_newBlock", [{"count": 2 * BLOCKS}])

    def ask(path: str, method: str, params: list[object]) -> object:
        try:
            return node.call(method, params, None if path == "/" else ParaId(int(path[1:])))
        except RpcError as error:
            raise NodeRefused(method, error.code, error.message) from error

    transcripts = [
        _transcript(name, command, ask)
        for name, command in sorted(COMMANDS.items())
        if name != "conform"
    ]
    # `conform` submits extrinsics, for which a local node has no pool.
    with _served() as served:
        return [*transcripts, _transcript("conform", partial(_conform, patience=10), served)]


def _transcript(name: str, command: Callable[[str], str], node: Answers) -> bytes:
    """Run a command on an honest node and return the transcript of the answers."""
    entries: list[list[object]] = []
    sent: object = _EXTRINSIC

    def answers(path: str, method: str, params: list[object]) -> object:
        """Return the honest answer and record it.

        The submitted extrinsic is recorded as `_EXTRINSIC`, because each run submits another one.
        """
        nonlocal sent
        sent = params[0] if method == _SUBMIT else sent
        answer = node(path, method, params)
        recorded = _replaced(answer, sent, _EXTRINSIC)
        if isinstance(answer, str) and len(answer) > _LONG:
            recorded = f"${path} {method} {len(_NAMED)}"
            _NAMED[recorded] = answer
        entries.append([path, method, recorded])
        return answer

    command(_answering(answers))
    return json.dumps([name, entries]).encode()


def _replaced(answer: Any, old: object, new: object) -> object:
    """Return an answer in which `new` replaces `old` among the extrinsics of a block."""
    match answer:
        case {"block": {"extrinsics": list(listed)} as block}:
            extrinsics = [new if extrinsic == old else extrinsic for extrinsic in listed]
            return {**answer, "block": {**block, "extrinsics": extrinsics}}
        case _:
            return answer


@target(
    "lying-node",
    "every answer of a node, as each command reads them",
    _transcripts,
    "client",
    text=True,
)
def _read(data: bytes) -> str:
    """Let a command read a node that answers with the content of a transcript.

    The node repeats the answers to a method in a circle. Raises `DefensiveFailure` if the command
    makes too many requests.
    """
    match parse_json(data, "transcript"):
        case [str(command), list(listed)] if command in COMMANDS:
            pass
        case _:
            return "no transcript"
    recorded: dict[tuple[str, str], list[object]] = {}
    for entry in listed:
        match entry:
            case [str(path), str(method), answer]:
                recorded.setdefault((path, method), []).append(answer)
    counts: dict[tuple[str, str], int] = {}
    total = 0
    sent: object = _EXTRINSIC

    def answers(path: str, method: str, params: list[object]) -> object:
        """Return the next recorded answer, with the extrinsic that this run has submitted."""
        nonlocal total, sent
        total += 1
        sent = params[0] if method == _SUBMIT else sent
        known = recorded.get((path, method))
        if known is None or total > MOST_REQUESTS:
            raise NodeRefused(method, -32601, "Method not found")
        index = counts.get((path, method), 0)
        counts[path, method] = index + 1
        answer = known[index % len(known)]
        if isinstance(answer, str):
            return _NAMED.get(answer, answer)
        return _replaced(answer, _EXTRINSIC, sent)

    try:
        return f"{command}: {COMMANDS[command](_answering(answers))}"
    finally:
        if total > MOST_REQUESTS:
            raise DefensiveFailure(f"{command} made more than {MOST_REQUESTS} requests")
