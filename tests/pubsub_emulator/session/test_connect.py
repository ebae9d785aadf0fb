"""`pubsub step --connect` and `pubsub explore --connect` against a node that serves, and against
one that lies.
"""

import copy
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from support.explorer.run_page import open_page
from support.node.nodes import Running, serving_beside
from support.plumbing.command import LINES, told
from support.plumbing.snapshots import Snapshot

from pubsub_emulator.cli.exits import INFRASTRUCTURE
from pubsub_emulator.cli.main import pubsub
from pubsub_emulator.client.errors import BadAnswer, NodeRefused, NodeUnavailable
from pubsub_emulator.emulator.scenario.file import load_bundled
from pubsub_emulator.explorer.live import LivePage
from pubsub_emulator.node.rpc import pubsub_read
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.runtime.framework.system import NUMBER
from pubsub_emulator.runtime.rules import Rules
from pubsub_emulator.session import Session
from pubsub_emulator.session.command import CommandError
from pubsub_emulator.session.completion import complete
from pubsub_emulator.session.node_api import RELAY, InProcess
from pubsub_emulator.session.remote import RemoteNode


@contextmanager
def node(**options: Any) -> Iterator[tuple[str, Running]]:
    """A node in another thread, and its URL."""
    with serving_beside(**options) as running:
        yield running.urls[None], running


LOOKING = {
    "#",
    "status",
    "headers",
    "events",
    "deliveries",
    "verdicts",
    "ledger",
    "storage",
    "child",
    "cache",
    "cursor",
}
LOOKING |= {
    "subscriptions",
    "collators",
    "strategies",
    "snapshots",
    "publishers",
    "candidates",
    "help",
    "diff",
}
REFUSED = (
    "publish 77 k v",
    "publish 1000 k v 99999999999",
    "publish 1000 k",
    "subscribe 1000 2000 k",
    "cheat 2000 omit-nod",
    "cheat 2000 omit-node 9",
    "order 2000 redeliver 99999999999",
    "runtime 2000 max_pov_size 1",
    "set relay EpochIndex -1",
    "events relay 999",
    "ledger 2000 999",
    "child 2000",
    "to 2",
    "head 999",
    "restore gone",
    "switch gone",
    "save now",
    "until event Nothing 1",
    "call chain_getBlockHash no",
    "call no_such_method",
    "fly",
)


def test_one_command_file_has_the_same_output_in_process_and_over_rpc(snapshot: Snapshot) -> None:
    """Word for word, errors included; the proofs that states are read by are verified on the
    way.
    """
    local = Session.of(load_bundled("node"), accounts=True)
    told(local, "step")
    shown = []
    with node() as (url, _), closing(Session.at(url)) as remote:
        for line in LINES:
            seen = (
                local.network.relay.header.hash(),
                local.chain(2000).state.root(),
                list(local.journal),
            )
            there = told(remote, line)
            if line == "status":
                where, _, there = there.partition("\n")
                assert (
                    where
                    == f"node relay chain at {url.rstrip('/')}: best block {local.number}, final"
                    f" block {local.number}"
                )
            here = told(local, line)
            shown.append(f"> {line if len(line) < 99 else f'{line[:96]}…'}\n{here}\n")
            assert there == here, line
            if line.partition(" ")[0] in LOOKING:
                assert bool(there) == (line[0] != "#")
                now = (
                    local.network.relay.header.hash(),
                    local.chain(2000).state.root(),
                    list(local.journal),
                )
                assert now == seen, f"{line} changes nothing"
        for line in REFUSED:
            texts = []
            for session in (remote, local):
                with pytest.raises(PubsubError) as refused:
                    told(session, line)
                texts.append(str(refused.value).replace(url.rstrip("/"), "this session"))
            assert texts[0] == texts[1], line
    snapshot("session", "\n".join(shown))


def test_two_sessions_over_one_node_see_what_the_other_does() -> None:
    with (
        node() as (url, running),
        closing(Session.at(url)) as one,
        closing(Session.at(url)) as other,
    ):
        told(one, "step 3")
        assert other.number == 4
        told(one, "save a")
        told(other, "set relay Babe.EpochIndex 12")
        told(one, "step")
        assert "12" in told(other, "storage relay Babe.EpochIndex")
        told(other, "head 2")
        assert running.server.live.network.number == one.number == 2
        assert told(one, "restore a") == "back at a: branch main is at relay block 4"
        assert "12" not in told(other, "storage relay Babe.EpochIndex")
        told(other, "subscribe 2000 1000 X/Y")
        assert "sent, not in force yet" in told(one, "subscriptions 2000")


def test_help_and_completion_are_those_of_every_session() -> None:
    with node() as (url, _), closing(Session.at(url)) as remote:
        assert complete(remote, "sub") == ["subscribe", "subscriptions"]
        assert complete(remote, "child ") == ["1000"]
        assert complete(remote, "until ver") == ["verdict"]
        assert complete(remote, "publish 1000 1000/1")[:2] == ["1000/1"]
        for line in ("write x.json", "load x.json", "draw x.svg block 2000"):
            with pytest.raises(
                CommandError,
                match=r"for a session over a scenario; `pubsub step SCENARIO` begins one",
            ):
                told(remote, line)


def test_what_a_node_does_not_do_is_one_line() -> None:
    with node(dev=False) as (url, _), closing(Session.at(url)) as remote:
        with pytest.raises(
            CommandError, match=r"does not offer dev_newBlock; .*`pubsub serve --dev` has more$"
        ):
            told(remote, "step")
        with pytest.raises(CommandError, match="did you mean step"):
            told(remote, "stepp")
        with pytest.raises(CommandError, match=r"there is no parachain 7\. Parachains: 1000, 2000"):
            told(remote, "subscriptions 7")
        with pytest.raises(
            CommandError, match=r"not a number in hexadecimal digits|a whole number"
        ):
            told(remote, "call chain_getBlockHash no")
    for url in ("ws://127.0.0.1:1", "http://127.0.0.1:1", "ws://localhost:1"):
        with (
            pytest.raises(NodeUnavailable, match=f"^nobody listens at {url}"),
            closing(Session.at(url)),
        ):
            pass


def test_of_any_substrate_node_events_storage_and_headers_are_read() -> None:
    with node() as (url, running), closing(Session.at(url)) as own:
        told(own, "step 3")
        events = told(own, "events")
        running.server.node.methods = {
            name: method
            for name, method in running.server.node.methods.items()
            if not name.startswith(("pubsub_", "dev_"))
        }
        with closing(Session.at(url)) as other:
            where, line = told(other, "status").splitlines()
            assert where.endswith("best block 4, final block 4")
            assert (
                line
                == "this node was not started by `pubsub serve`: only events, storage and headers"
                " are available"
            )
            assert told(other, "headers relay") == told(other, "headers")
            assert [row.partition("(")[0] for row in told(other, "events").splitlines()] == [
                row.partition("(")[0] for row in events.splitlines()
            ]
            assert told(other, "storage relay System.Number") == "System.Number: 4"
            assert "0x04000000" in told(other, f"storage relay {hexed(NUMBER.key)}")
            assert told(other, "call system_chain") == 'system_chain: "node relay chain"'
            for line in (
                "step",
                "deliveries",
                "ledger 2000",
                "publish 1000 k v",
                "save a",
                "subscriptions",
                "collators",
            ):
                with pytest.raises(
                    CommandError, match=r"^this node was not started by `pubsub serve`"
                ):
                    told(other, line)


def test_numbers_of_a_node_are_shown_as_they_are_typed() -> None:
    with node() as (url, _):
        done = CliRunner().invoke(
            pubsub, ["step", "--connect", url], input="publishers\nsubscriptions 2000\n"
        )
        assert done.exit_code == 0, done.stderr
        assert "1000" in done.stdout
        assert "1,000" not in done.stdout


def test_a_script_over_a_node_stops_at_the_first_failing_line() -> None:
    with node() as (url, running):
        done = CliRunner().invoke(
            pubsub, ["step", "--connect", url], input="step 3\nnonsense\nstep 3\n"
        )
        assert done.exit_code == 2
        assert "standard input:2: there is no command 'nonsense'" in done.stderr
        assert running.server.live.network.number == 4


def test_a_nodes_newest_blocks_are_executed_again_and_drawn(tmp_path: Path) -> None:
    out = tmp_path / "pages" / "node.html"
    with node() as (url, running), closing(Session.at(url)) as remote:
        told(remote, "cheat 2000 omit-node")
        told(remote, "step 12")
        done = CliRunner().invoke(
            pubsub, ["explore", "--connect", url, "--blocks", "8", "--out", str(out)]
        )
        assert done.exit_code == 0, done.stderr
        page = open_page(out.read_text(encoding="utf-8"))
        kept = running.server.timeline.moments()[-9:]
        drawn = open_page(LivePage(load_bundled("node")).explore(running.server.node, kept))
        numbers = [block["number"] for block in page.index["relay"]]
        assert numbers == [moment.number for moment in kept[1:]]
        assert len(page.index["candidates"]) == len(drawn.index["candidates"])
        places = {
            name: [row[0] for row in each.index["candidates"]]
            for name, each in (("read", page), ("own", drawn))
        }
        assert places["read"] == places["own"]
        assert any(record.refusal is not None for moment in kept[1:] for record in moment.records)


def test_a_node_that_says_what_its_bytes_do_not_is_not_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = pubsub_read.candidate_json
    monkeypatch.setattr(
        pubsub_read,
        "candidate_json",
        lambda *given: {**honest(*given), "verdict": "BadSeal", "status": "rejected"},
    )
    with node() as (url, _), closing(Session.at(url)) as remote:
        told(remote, "step 3")
        done = CliRunner().invoke(
            pubsub, ["explore", "--connect", url, "--out", str(tmp_path / "x.html")]
        )
        assert done.exit_code != 0
        assert "the node says BadSeal, executing it gives valid" in str(done.stderr) + str(
            done.exception
        )
        assert not (tmp_path / "x.html").exists()


EVIL = "\x1b]0;owned\x07\u202e\n"
WRONG: tuple[Any, ...] = (
    None, True, False, 0, -1, 5, 1 << 70, 1.5, "", EVIL, EVIL * 4000, "0x", "0xzz",
    "0x" + "ff" * 64, [], {}, [5], [[]], {"number": 5}, {EVIL: EVIL},
)  # fmt: skip


class Lying(RemoteNode):
    """A node whose answers a draw changes, and which proves its states with such answers."""

    def __init__(self, honest: InProcess) -> None:
        super().__init__("ws://liar")
        self.honest = honest
        self.lie: Any = lambda _method, answer: answer
        self.methods: set[str] = set()

    def ask(self, method: str, *params: object, chain: str = RELAY) -> Any:
        """The answer, or a lie."""
        self.methods.add(method)
        return self.lie(method, copy.deepcopy(self.honest.ask(method, *params, chain=chain)))

    def _chain(self, name: str) -> Any:
        """What proves a chain's states; no request leaves this process."""
        return SimpleNamespace(url=f"{self.url}/{name}", ask=partial(self.ask, chain=name))


def places(answer: object, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place within an answer, itself included."""
    inner = (
        answer.items()
        if isinstance(answer, dict)
        else enumerate(answer)
        if isinstance(answer, list)
        else ()
    )
    return [way, *(place for name, each in inner for place in places(each, (*way, name)))]


def changed(answer: Any, random: Random) -> Any:
    """An answer with another value at one place: of another type, out of order, twice, or
    missing.
    """
    *way, last = (None, *random.choice(places(answer)))
    if last is None:
        return random.choice(WRONG)
    at = answer
    for name in way[1:]:
        at = at[name]
    match random.randrange(4):
        case 0 if isinstance(at, list):
            at.append(at[last])
        case 1 if isinstance(at, list):
            at.reverse()
        case 2:
            del at[last]
        case _:
            at[last] = random.choice(WRONG)
    return answer


def played(session: Session, line: str) -> str:
    """What a line shows, or the line that says why it cannot be done."""
    try:
        return told(session, line)
    except PubsubError as error:
        return str(error)


@pytest.mark.parametrize("seed", range(12))
def test_whatever_a_node_answers_is_shown_safely_or_refused(liar: Lying, seed: int) -> None:
    random = Random(seed)
    session = Session(liar)
    liar.lie = lambda _method, answer: changed(answer, random) if random.random() < 0.3 else answer
    for line in random.choices(LINES, k=30):
        shown = played(session, line)
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown), (
            line
        )


@pytest.mark.parametrize(
    "wrong",
    [
        5,
        "x",
        {},
        [[5]],
        [{"para": "2000"}, 5],
    ],
    ids=repr,
)
def test_an_answer_of_a_wrong_type_is_one_line_that_repeats_it(liar: Lying, wrong: object) -> None:
    """Of every method that the session reads as something."""
    session = Session(liar)
    for line in LINES:
        played(session, line)
    read = {
        "chain_getHeader": "headers relay",
        "chain_getBlockHash": "headers relay",
        "pubsub_parachains": "status",
        "pubsub_block": "verdicts",
        "pubsub_deliveries": "deliveries",
        "pubsub_collators": "collators",
        "pubsub_candidates": "candidates 2000",
        "pubsub_publishers": "publishers",
        "pubsub_ledger": "ledger 2000",
        "pubsub_runtime": "runtime 2000",
        "pubsub_honest": "honest 2000",
        "pubsub_cheat": "cheat 2000 omit-node",
        "dev_newBlock": "step",
        "dev_snapshot": "save z",
        "dev_restore": "dry-run",
        "state_getStorage": "events",
    }
    unread = {"chain_getFinalizedHead", "dev_forget", "dev_setHead", "pubsub_delete"}
    unread |= {"pubsub_order", "pubsub_publish", "pubsub_setRuntime", "pubsub_setStorage"}
    proofs = {
        "childstate_getKeysPaged",
        "state_getKeysPaged",
        "state_getChildReadProof",
        "state_getReadProof",
    }
    assert liar.methods == {*read, *unread, *proofs, "pubsub_scenario", "system_chain"}
    for method, line in read.items():
        if method == "dev_snapshot" and isinstance(wrong, str):
            continue
        liar.lie = lambda name, answer, method=method: wrong if name == method else answer
        with pytest.raises(BadAnswer) as refused:
            list(session.execute(line))
        assert "\n" not in str(refused.value)
        assert str(refused.value).startswith(f"ws://liar: {method}"), method
    liar.lie = lambda name, answer: wrong if name == "pubsub_scenario" else answer
    with pytest.raises(BadAnswer, match=r"^ws://liar: pubsub_scenario.*; the node answered "):
        Session(liar)


def test_a_script_over_a_lying_node_ends_with_exit_code_4(
    liar: Lying, monkeypatch: pytest.MonkeyPatch
) -> None:

    def at(_class: type[Session], _url: str, _rules: Rules) -> Session:
        session = Session(liar)
        liar.lie = lambda method, answer: {"oops": EVIL} if method == "pubsub_block" else answer
        return session

    monkeypatch.setattr(Session, "at", classmethod(at))
    done = CliRunner().invoke(pubsub, ["step", "--connect", "ws://liar"], input="verdicts\n")
    assert done.exit_code == INFRASTRUCTURE
    assert done.stderr.startswith("pubsub: standard input:1: ws://liar: pubsub_block.")
    assert "\x1b" not in done.output
    assert len(done.stderr.splitlines()) == 1


def test_what_a_node_refuses_and_how_it_ends_is_shown_safely(liar: Lying) -> None:
    session = Session(liar)

    def refuse(method: str, _answer: Any) -> Any:
        raise NodeRefused(method, code, EVIL, EVIL)

    liar.lie = refuse
    for code in (1, 4003, -32602, -32601, -32000):  # noqa: B007  # read by `refuse`
        shown = played(session, "call system_health")
        assert shown
        assert shown.isprintable()


def test_what_a_bad_answer_says_is_made_safe() -> None:
    class Lost(RemoteNode):
        def _chain(self, _name: str) -> Any:
            def lost(_work: object) -> None:
                raise BadAnswer(EVIL)

            return SimpleNamespace(rpc=SimpleNamespace(call=lambda _method: None), run=lost)

    with pytest.raises(BadAnswer, match=r"^\\u001b"):
        Lost("ws://liar").ask("system_health")


@pytest.fixture
def liar() -> Iterator[Lying]:
    """A node that is honest so far, at relay block 4."""
    honest = InProcess(load_bundled("node"), accounts=True)
    honest.ask("dev_newBlock", {"count": 4})
    with closing(Lying(honest)) as made:
        yield made
