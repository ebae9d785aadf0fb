"""A network on the state of a running node: what is read is proven, and the roots are those of the
merged state.
"""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from support.node.nodes import Running, serving_beside
from support.plumbing.told import beside
from support.plumbing.web import served

from pubsub_emulator import Network, key_from_data
from pubsub_emulator.client import live_state as live_state_module
from pubsub_emulator.client import state_file
from pubsub_emulator.client.fork import open_fork
from pubsub_emulator.client.live_state import live_state, state_of
from pubsub_emulator.client.state_file import read_state, write_state
from pubsub_emulator.emulator.scenario.file import parse_scenario
from pubsub_emulator.emulator.scenario.model import Scenario
from pubsub_emulator.node.rpc.encode import header_json
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.pubsub import PublishedEntry, derive_child_key
from pubsub_emulator.primitives.scale import encode_bytes
from pubsub_emulator.primitives.storage_keys import child_root_key, item_prefix
from pubsub_emulator.primitives.types import Hash, ParaId, RelayBlockNumber
from pubsub_emulator.runtime.accounts.endowed import ACCOUNTS, ENDOWMENT
from pubsub_emulator.runtime.framework.fork import BadFork, Fork
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.runtime.framework.system import NUMBER, account
from pubsub_emulator.runtime.pallet_pubsub.storage import RegisteredPublishers
from pubsub_emulator.trie import Trie, lazy, read_child_proof
from pubsub_emulator.trie.codec import BRANCH, LEAF, node_head, pack
from pubsub_emulator.trie.errors import BadNode
from pubsub_emulator.trie.lazy import StateUnavailable
from pubsub_emulator.trie.partial import MAX_KEY

PRICE = key_from_data(b"forked price")
BLOCKS = 6
PUBLISHER, SUBSCRIBER = ParaId(3000), ParaId(2000)


def _scenario() -> Scenario:
    """A publisher that has to register, and a subscriber to half of its keys."""
    return parse_scenario(
        """
        name = "forked"
        seed = "forked"
        relay_blocks = 100
        [[publishers]]
        paras = [3000]
        keys = 4
        value_size = 40
        [[subscribers]]
        para = 2000
        subscribe = [{ publishers = [3000], keys = 2 }]
        """,
        "forked",
    )


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    """A node that has built blocks."""
    with serving_beside(_scenario()) as found:
        asyncio.run_coroutine_threadsafe(found.step(BLOCKS), found.loop).result()
        yield found


def _forked(running: Running, chain: int | None = None) -> AbstractContextManager[Fork]:
    return live_state(running.urls[chain])


def _of(fork: Fork, forks: dict[int, Fork] | None = None) -> Network:
    """A network of its own, whose subscriber wants a key that the forked chain has and one that it
    has not.
    """
    keys = sorted([_published(fork), PRICE])
    return Network.of(
        [PUBLISHER], {SUBSCRIBER: {PUBLISHER: keys}}, fork=fork, parachain_forks=forks
    )


def _published(fork: Fork) -> Any:
    trie = fork.state.children.get(derive_child_key(PUBLISHER))
    assert trie is not None
    return next(iter(trie.keys()))


def _goes_on(fork: Fork, parachain: Fork) -> None:
    """All that a user does with a fork: look, publish, receive, delete, and prove what is
    stored.
    """
    network = _of(fork, {SUBSCRIBER: parachain})
    real = _published(fork)
    held = fork.state.children[derive_child_key(PUBLISHER)].get(real)
    assert held is not None
    assert (network.number, network.relay.header.parent_hash) == (fork.number + 1, fork.block)

    first = network.step()[0]
    network.publish(PUBLISHER, PRICE, b"7.42", ttl=5)
    later = network.step(3)
    values = {
        delivery.key: delivery.value
        for step in (first, *later)
        for delivery in step.deliveries(SUBSCRIBER)
    }
    assert values == {real: PublishedEntry.decode(held).value, PRICE: b"7.42"}
    assert not [record for step in (first, *later) for record in step.refused]

    relay = network.relay
    nodes: dict[Any, bytes] = {}
    relay.state.prove((), {derive_child_key(PUBLISHER): [PRICE]}, nodes)
    read = read_child_proof(
        relay.header.state_root, nodes.values(), derive_child_key(PUBLISHER), [PRICE], exact=True
    )
    entry = read[PRICE]
    assert entry is not None
    assert PublishedEntry.decode(entry).value == b"7.42"

    network.delete(PUBLISHER, [real])
    network.step(6)
    assert relay.storage().child_get(derive_child_key(PUBLISHER), real) is None
    assert relay.storage().child_get(derive_child_key(PUBLISHER), PRICE) is None, "expired"


def test_a_network_goes_on_from_a_running_node(running: Running) -> None:
    with _forked(running) as relay, _forked(running, SUBSCRIBER) as parachain:
        _goes_on(relay, parachain)


def test_a_lazy_fork_and_a_fork_of_the_whole_state_agree(running: Running) -> None:
    whole = running.server.live.network.relay.state.fork()

    with _forked(running) as fork:
        lazy = _of(fork)
        eager = _of(Fork(whole, fork.number, fork.block, "memory"))
        for network in (lazy, eager):
            network.publish(PUBLISHER, PRICE, b"1")
        assert [step.block for step in lazy.step(4)] == [step.block for step in eager.step(4)]
        changed = lazy.relay.state.top.differences(fork.state.top)
        assert list(changed) == list(eager.relay.state.top.differences(whole.top))


def test_a_fork_has_its_accounts_and_publishers_beside_those_of_the_network(
    running: Running,
) -> None:
    with _forked(running) as fork:
        network = _of(fork)
        storage = network.relay.storage()
        assert account(storage, ACCOUNTS["sr25519/Bob"]).data.free == ENDOWMENT
        info = RegisteredPublishers.get(storage, PUBLISHER)
        assert info is not None
        assert info.manager == ACCOUNTS["sr25519/Alice"]
        assert network.relay.runtime.paras.parachains(storage) == sorted(network.parachains)
        assert fork.state.top.get(item_prefix("Timestamp", "Now")) is not None
        assert storage.get(item_prefix("Timestamp", "Now")) is None


def test_an_exported_state_is_the_state_of_the_block(running: Running, tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    with _forked(running) as fork, _forked(running, SUBSCRIBER) as parachain:
        count = write_state(fork, path)
        document = json.loads(path.read_bytes())["genesis"]["raw"]
        assert count == len(document["top"]) + sum(map(len, document["childrenDefault"].values()))
        read = read_state(path)
        assert (read.root, read.number) == (fork.root, fork.number)
        _goes_on(read, parachain)
    assert list(tmp_path.iterdir()) == [path]


def test_an_older_block_is_forked_by_number_or_hash(running: Running) -> None:
    old = running.server.timeline.moment(3)
    assert old is not None

    for at in (3, f"0x{old.relay.hash.hex()}"):
        with open_fork(running.urls[None], at) as fork:
            assert (fork.number, fork.block, fork.root) == (
                3,
                old.relay.hash,
                old.relay.header.state_root,
            )
    for at, words in (
        (99, "no block 99"),
        ("0x" + "00" * 32, "no block 0x00"),
        ("newest", "not a block's number"),
    ):
        with pytest.raises(PubsubError, match=words), open_fork(running.urls[None], at):
            pass


# A node that lies, or is gone


Alter = Callable[[str, Any], Any]


def _between(upstream: str, alter: Alter) -> AbstractContextManager[str]:
    """A proxy over HTTP that changes what a node answers."""

    async def handle(request: web.Request) -> web.Response:
        body = await request.json()
        async with aiohttp.ClientSession() as http, http.post(upstream, json=body) as answer:
            found = await answer.json()
        if "result" in found:
            found["result"] = alter(body["method"], found["result"])
        return web.json_response(found)

    app = web.Application()
    app.router.add_post("/", handle)
    return beside(lambda: served(app))


@pytest.mark.parametrize(
    ("method", "other", "words"),
    [
        pytest.param(
            "state_getReadProof",
            lambda told: {"proof": [node[:-2] + "ff" for node in told["proof"]]},
            "lacks node",
            id="altered nodes",
        ),
        pytest.param(
            "state_getReadProof",
            lambda _: None,
            "state_getReadProof: an object is expected",
            id="no proof",
        ),
        pytest.param(
            "chain_getHeader",
            lambda told: {**told, "stateRoot": "0x" + "11" * 32},
            "has another hash",
            id="another state root",
        ),
    ],
)
def test_nothing_that_a_node_makes_up_is_taken_over(
    running: Running, method: str, other: Callable[[Any], Any], words: str
) -> None:
    alter: Alter = lambda asked, result: other(result) if asked == method else result  # noqa: E731
    with (
        _between(running.http_url(), alter) as url,
        pytest.raises(PubsubError, match=words),
        live_state(url) as fork,
    ):
        _of(fork)


def test_a_step_that_cannot_be_read_is_undone_and_can_be_retried(
    running: Running,
) -> None:
    gone = False

    def alter(method: str, result: Any) -> Any:
        return [] if gone and "Proof" in method else result

    with _between(running.http_url(), alter) as url, live_state(url) as fork:
        network = Network.of([PUBLISHER], {SUBSCRIBER: {PUBLISHER: [PRICE]}}, fork=fork)
        before = network.relay.header
        gone = True
        with pytest.raises(StateUnavailable):
            network.step(3)
        assert network.relay.header == before
        gone = False
        assert len(network.step(3)) == 3


# Files


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "genesis.raw: missing"),
        ('{"genesis": {"raw": {}}}', "genesis.raw.top: missing"),
        ('{"genesis": {"raw": {"top": {"aa": "0x00"}}}}', "'aa' is not a 0x string"),
        (
            '{"genesis": {"raw": {"top": {"0xaa": 3}}}}',
            "genesis.raw.top.0xaa: '3' is not a 0x string",
        ),
        ('{"genesis": {"raw": {"top": {"0xaa": "0x0"}}}}', "is not hex"),
        ('{"genesis": {"raw": {"top": {"0xaa": "0x00", "0xAA": "0x01"}}}}', "occurs twice"),
        (
            '{"genesis": {"raw": {"top": {"0x' + "00" * 5000 + '": "0x00"}}}}',
            "a key of 5,000 bytes",
        ),
        ('{"genesis": {"raw": {"top": {"0xaa": "0x00"}, "childrenDefault": []}}}', "System.Number"),
        (
            '{"genesis": {"raw": {"top": {"0xaa": "0x00"}, "childrenDefault": [1]}}}',
            "childrenDefault: not a table",
        ),
        ('{"genesis": {"raw": {"top": {"0xaa": "0x00"}}}}', "System.Number"),
    ],
)
def test_a_file_that_is_no_state_is_refused_with_its_place(
    tmp_path: Path, text: str, words: str
) -> None:
    path = tmp_path / "state.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadFork, match=words) as refused:
        read_state(path)
    assert str(path) in str(refused.value)


class Liar:
    """A node whose state root is of a trie of its own."""

    url = "liar"

    def __init__(self, nodes: list[bytes]) -> None:
        head = Header(
            Hash(bytes(32)), RelayBlockNumber(7), blake2_256(nodes[-1]), Hash(bytes(32)), ()
        )
        self._answers = {
            "chain_getFinalizedHead": hexed(head.hash()),
            "chain_getHeader": header_json(head),
            "state_getKeysPaged": [],
            "state_getReadProof": {"proof": [hexed(node) for node in nodes]},
        }

    def ask(self, method: str, *_params: object) -> Any:
        return self._answers[method]


def _leaf(nibbles: str) -> bytes:
    return node_head(LEAF, len(nibbles)) + pack(nibbles) + encode_bytes(b"v" * 32)


def _branch(child: bytes) -> bytes:
    return node_head(BRANCH, 0) + b"\xff\xff" + encode_bytes(blake2_256(child)) * 16


def _shared(levels: int, leaf: bytes) -> list[bytes]:
    nodes = [leaf]
    for _ in range(levels):
        nodes.append(_branch(nodes[-1]))
    return nodes


@pytest.mark.parametrize("leaf", ["00", "0" * (2 * MAX_KEY + 1)])
def test_a_value_at_an_odd_nibble_or_endless_key_is_bad(leaf: str, tmp_path: Path) -> None:
    with pytest.raises(BadNode, match="a value after"):
        write_state(state_of(Liar(_shared(1, _leaf(leaf)))), tmp_path / "state.json")
    assert not [*tmp_path.iterdir()]


def test_nodes_nested_without_end_are_a_bad_node() -> None:
    node = _leaf("")
    for _ in range(20_000):
        node = node_head(BRANCH, 0) + (1).to_bytes(2, "little") + encode_bytes(node)
    state = state_of(Liar([node])).state
    with pytest.raises(BadNode, match="an inline child of"):
        state.top.get(bytes(32))


def test_a_trie_of_shared_children_is_walked_up_to_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """6 KB of nodes have 16^11 entries."""
    fork = state_of(Liar(_shared(11, _leaf("0"))))
    monkeypatch.setattr(state_file, "MOST_BYTES", 1 << 20)
    with pytest.raises(BadFork, match="more than 1,048,576 bytes"):
        write_state(fork, tmp_path / "state.json")
    assert not [*tmp_path.iterdir()]
    monkeypatch.setattr(lazy, "MOST_LOADS", 10_000)
    with pytest.raises(StateUnavailable, match="a walk of more than 10,000 nodes"):
        len(fork.state.top)


def test_an_export_is_read_back_at_its_limit_and_not_beyond_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fork = state_of(Liar(_shared(1, _leaf("0"))))
    path = tmp_path / "state.json"
    write_state(fork, path)
    size = path.stat().st_size
    monkeypatch.setattr(state_file, "MOST_BYTES", size)
    write_state(fork, path)
    with pytest.raises(BadFork, match=r"System\.Number is missing"):
        read_state(path)
    monkeypatch.setattr(state_file, "MOST_BYTES", size - 1)
    with pytest.raises(BadFork, match="the limit for such a file"):
        write_state(fork, path)
    with pytest.raises(BadFork, match="the limit for such a file"):
        read_state(path)


def test_nodes_of_one_state_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = _shared(1, _leaf("0"))
    monkeypatch.setattr(live_state_module, "MOST_NODES", sum(map(len, nodes)))
    assert len(state_of(Liar(nodes)).state.top) == 16
    monkeypatch.setattr(live_state_module, "MOST_NODES", sum(map(len, nodes)) - 1)
    with pytest.raises(StateUnavailable, match="bytes of nodes"):
        len(state_of(Liar(nodes)).state.top)


def test_a_child_root_that_is_not_that_of_its_entries_is_refused(tmp_path: Path) -> None:
    root_key = "0x" + child_root_key(b"pubsub").hex()
    document = {"genesis": {"raw": {"top": {root_key: "0x" + "11" * 32}, "childrenDefault": {}}}}
    path = tmp_path / "state.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(BadFork, match="is a child root that does not match its entries"):
        read_state(path)


@pytest.mark.parametrize("version", [0, 1])
def test_a_child_root_of_either_layout_version_is_taken(tmp_path: Path, version: int) -> None:
    trie = Trie.from_entries([(b"key", b"v" * 40)], version)
    top = {child_root_key(b"child"): trie.root(), NUMBER.key: bytes(4)}
    rows = {"0x" + b"child".hex(): {"0x" + b"key".hex(): hexed(b"v" * 40)}}
    raw = {"top": {hexed(key): hexed(value) for key, value in top.items()}, "childrenDefault": rows}
    path = tmp_path / "state.json"
    path.write_text(json.dumps({"genesis": {"raw": raw}}), encoding="utf-8")
    state = read_state(path).state
    written = Trie.from_entries([(b"key", b"v" * 40)])
    assert state.top.get(child_root_key(b"child")) == written.root()


def test_a_file_has_one_state_and_no_blocks(tmp_path: Path) -> None:
    with (
        pytest.raises(BadFork, match="is allowed for nodes only"),
        open_fork(tmp_path / "state.json", 3),
    ):
        pass


def test_another_pallet_called_broadcaster_is_no_ground_to_go_on_from() -> None:
    key = RegisteredPublishers.key_for(ParaId(1000))
    number = item_prefix("System", "Number")
    state = State.from_entries([(key, b"\x01"), (number, (7).to_bytes(4, "little"))])
    fork = Fork(state, 7, state.root(), "a chain of others")
    with pytest.raises(
        BadFork, match="a chain of others: Broadcaster does not have the storage items"
    ):
        Network.of([1000], {2000: {1000: [PRICE]}}, fork=fork)
