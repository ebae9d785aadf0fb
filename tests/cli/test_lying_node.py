"""A session over a node that lies: every answer of a wrong type is one line, and no word of it is shown raw."""

import copy
import re
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from support.command import LINES, told

from pubsub_emulator.cli.exits import INFRASTRUCTURE
from pubsub_emulator.cli.main import pubsub
from pubsub_emulator.cli.session import Session
from pubsub_emulator.cli.session.node_api import RELAY, InProcess
from pubsub_emulator.cli.session.remote import RemoteNode
from pubsub_emulator.client.errors import BadAnswer, NodeRefused
from pubsub_emulator.emulator.scenario.file import load_bundled
from pubsub_emulator.primitives.errors import PubsubError

EVIL = "\x1b]0;owned\x07\u202e\n"
WRONG: tuple[Any, ...] = (
    None, True, False, 0, -1, 5, 1 << 70, 1.5, "", EVIL, EVIL * 4000, "0x", "0xzz", "0x" + "ff" * 64, [], {}, [5], [[]],
    {"number": 5}, {EVIL: EVIL},
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


@pytest.fixture
def node() -> Iterator[Lying]:
    """A node that is honest so far, at relay block 4."""
    honest = InProcess(load_bundled("node"), accounts=True)
    honest.ask("dev_newBlock", {"count": 4})
    with closing(Lying(honest)) as made:
        yield made


def places(answer: object, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place within an answer, itself included."""
    inner = answer.items() if isinstance(answer, dict) else enumerate(answer) if isinstance(answer, list) else ()
    return [way, *(place for name, each in inner for place in places(each, (*way, name)))]


def changed(answer: Any, random: Random) -> Any:
    """An answer with another value at one place: of another type, out of order, twice, or missing."""
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
def test_whatever_a_node_answers_is_shown_safely_or_refused(node: Lying, seed: int) -> None:
    random = Random(seed)
    session = Session(node)
    node.lie = lambda _method, answer: changed(answer, random) if random.random() < 0.3 else answer
    for line in random.choices(LINES, k=30):
        shown = played(session, line)
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown), line


@pytest.mark.parametrize("wrong", [5, "x", {}, [[5]], [{"para": "2000"}, 5]], ids=repr)
def test_an_answer_of_a_wrong_type_is_one_line_that_repeats_it(node: Lying, wrong: object) -> None:
    """Of every method that the session reads as something."""
    session = Session(node)
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
    proofs = {"childstate_getKeysPaged", "state_getKeysPaged", "state_getChildReadProof", "state_getReadProof"}
    assert node.methods == {*read, *unread, *proofs, "pubsub_scenario", "system_chain"}
    for method, line in read.items():
        if method == "dev_snapshot" and isinstance(wrong, str):
            continue
        node.lie = lambda name, answer, method=method: wrong if name == method else answer
        with pytest.raises(BadAnswer) as refused:
            list(session.execute(line))
        assert "\n" not in str(refused.value)
        assert str(refused.value).startswith(f"ws://liar: {method}"), method
    node.lie = lambda name, answer: wrong if name == "pubsub_scenario" else answer
    with pytest.raises(BadAnswer, match=r"^ws://liar: pubsub_scenario.*; the node answered "):
        Session(node)


def test_a_script_over_a_lying_node_ends_with_the_code_of_a_failed_machine(
    node: Lying, monkeypatch: pytest.MonkeyPatch
) -> None:

    def at(_class: type[Session], _url: str) -> Session:
        session = Session(node)
        node.lie = lambda method, answer: {"oops": EVIL} if method == "pubsub_block" else answer
        return session

    monkeypatch.setattr(Session, "at", classmethod(at))
    done = CliRunner().invoke(pubsub, ["step", "--connect", "ws://liar"], input="verdicts\n")
    assert done.exit_code == INFRASTRUCTURE
    assert done.stderr.startswith("pubsub: standard input:1: ws://liar: pubsub_block.")
    assert "\x1b" not in done.output
    assert len(done.stderr.splitlines()) == 1


def test_what_a_node_refuses_and_how_it_ends_is_shown_safely(node: Lying) -> None:
    session = Session(node)

    def refuse(method: str, _answer: Any) -> Any:
        raise NodeRefused(method, code, EVIL, EVIL)

    node.lie = refuse
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
