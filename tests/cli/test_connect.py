"""`pubsub step --connect` and `pubsub explore --connect` against a node that serves."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support.command import LINES, told
from support.explorer import open_page
from support.node import Running, serving_beside

from pubsub_emulator.cli.main import pubsub
from pubsub_emulator.cli.session import Session
from pubsub_emulator.cli.session.command import CommandError
from pubsub_emulator.cli.session.completion import complete
from pubsub_emulator.client.errors import NodeUnavailable
from pubsub_emulator.emulator.scenario.file import load_bundled
from pubsub_emulator.explorer.live import LivePage
from pubsub_emulator.node.rpc import pubsub_read
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.runtime.framework.system import NUMBER


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
LOOKING |= {"subscriptions", "collators", "strategies", "snapshots", "publishers", "candidates", "help", "diff"}
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


def test_one_file_of_commands_has_the_same_output_in_process_and_over_json_rpc() -> None:
    """Word for word, errors included; the proofs that states are read by are verified on the way."""
    local = Session.of(load_bundled("node"), accounts=True)
    told(local, "step")
    with node() as (url, _), closing(Session.at(url)) as remote:
        for line in LINES:
            seen = local.network.relay.header.hash(), local.chain(2000).state.root(), list(local.journal)
            there = told(remote, line)
            if line == "status":
                where, _, there = there.partition("\n")
                assert (
                    where
                    == f"node relay chain at {url.rstrip('/')}: best block {local.number}, final block {local.number}"
                )
            assert there == told(local, line), line
            if line.partition(" ")[0] in LOOKING:
                assert bool(there) == (line[0] != "#")
                now = local.network.relay.header.hash(), local.chain(2000).state.root(), list(local.journal)
                assert now == seen, f"{line} changes nothing"
        for line in REFUSED:
            texts = []
            for session in (remote, local):
                with pytest.raises(PubsubError) as refused:
                    told(session, line)
                texts.append(str(refused.value).replace(url.rstrip("/"), "this session"))
            assert texts[0] == texts[1], line


def test_two_sessions_over_one_node_see_what_the_other_does() -> None:
    with node() as (url, running), closing(Session.at(url)) as one, closing(Session.at(url)) as other:
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
            with pytest.raises(CommandError, match=r"for a session over a scenario; `pubsub step SCENARIO` begins one"):
                told(remote, line)


def test_what_a_node_does_not_do_is_one_line() -> None:
    with node(dev=False) as (url, _), closing(Session.at(url)) as remote:
        with pytest.raises(CommandError, match=r"does not offer dev_newBlock; .*`pubsub serve --dev` has more$"):
            told(remote, "step")
        with pytest.raises(CommandError, match="did you mean step"):
            told(remote, "stepp")
        with pytest.raises(CommandError, match="there is no parachain 7; there are 1000, 2000"):
            told(remote, "subscriptions 7")
        with pytest.raises(CommandError, match=r"not a number in hexadecimal digits|a whole number"):
            told(remote, "call chain_getBlockHash no")
    for url in ("ws://127.0.0.1:1", "http://127.0.0.1:1", "ws://localhost:1"):
        with pytest.raises(NodeUnavailable, match=f"^nobody listens at {url}"), closing(Session.at(url)):
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
            assert line == "this node was not started by `pubsub serve`: only events, storage and headers are available"
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
                with pytest.raises(CommandError, match=r"^this node was not started by `pubsub serve`"):
                    told(other, line)


def test_numbers_of_a_node_are_shown_as_they_are_typed() -> None:
    with node() as (url, _):
        done = CliRunner().invoke(pubsub, ["step", "--connect", url], input="publishers\nsubscriptions 2000\n")
        assert done.exit_code == 0, done.stderr
        assert "1000" in done.stdout
        assert "1,000" not in done.stdout


def test_a_script_over_a_node_stops_at_the_first_line_that_cannot_be_done() -> None:
    with node() as (url, running):
        done = CliRunner().invoke(pubsub, ["step", "--connect", url], input="step 3\nnonsense\nstep 3\n")
        assert done.exit_code == 2
        assert "standard input:2: there is no command 'nonsense'" in done.stderr
        assert running.server.live.network.number == 4
    for words in ([], ["demo", "--connect", url]):
        refused = CliRunner().invoke(pubsub, ["step", *words])
        assert refused.exit_code == 2
        assert "give a SCENARIO or --connect URL" in str(refused.stderr) + str(refused.exception)


def test_a_nodes_newest_blocks_are_executed_again_and_drawn(tmp_path: Path) -> None:
    out = tmp_path / "pages" / "node.html"
    with node() as (url, running), closing(Session.at(url)) as remote:
        told(remote, "cheat 2000 omit-node")
        told(remote, "step 12")
        done = CliRunner().invoke(pubsub, ["explore", "--connect", url, "--blocks", "8", "--out", str(out)])
        assert done.exit_code == 0, done.stderr
        page = open_page(out.read_text(encoding="utf-8"))
        kept = running.server.timeline.moments()[-9:]
        drawn = open_page(LivePage(load_bundled("node")).explore(running.server.node, kept))
        numbers = [block["number"] for block in page.index["relay"]]
        assert numbers == [moment.number for moment in kept[1:]]
        assert len(page.index["candidates"]) == len(drawn.index["candidates"])
        places = {name: [row[0] for row in each.index["candidates"]] for name, each in (("read", page), ("own", drawn))}
        assert places["read"] == places["own"]
        assert any(record.refusal is not None for moment in kept[1:] for record in moment.records)


def test_a_node_that_says_what_its_bytes_do_not_is_not_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = pubsub_read.candidate_json
    monkeypatch.setattr(
        pubsub_read, "candidate_json", lambda *given: {**honest(*given), "verdict": "BadSeal", "status": "rejected"}
    )
    with node() as (url, _), closing(Session.at(url)) as remote:
        told(remote, "step 3")
        done = CliRunner().invoke(pubsub, ["explore", "--connect", url, "--out", str(tmp_path / "x.html")])
        assert done.exit_code != 0
        assert "the node says BadSeal, executing it gives valid" in str(done.stderr) + str(done.exception)
        assert not (tmp_path / "x.html").exists()
