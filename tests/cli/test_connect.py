"""`pubsub step --connect` and `pubsub explore --connect` against a node that serves."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner
from explorer_support import open_page
from node_support import Running, serving

from pubsub_emulator.cli.main import pubsub
from pubsub_emulator.cli.pages import Grid, Line
from pubsub_emulator.cli.session import Session
from pubsub_emulator.cli.session.command import CommandError
from pubsub_emulator.cli.session.remote import COMMANDS, RemoteSession
from pubsub_emulator.client.errors import NodeRefused, NodeUnavailable
from pubsub_emulator.emulator.scenario.file import load_bundled
from pubsub_emulator.explorer.live import LivePage
from pubsub_emulator.node.rpc import pubsub_read

PATIENCE = 60


@contextmanager
def node(**options: object) -> Iterator[tuple[str, Running]]:
    """A node that serves from another thread, where its loop runs."""
    started: list[tuple[str, Running]] = []
    ready, end = threading.Event(), threading.Event()

    async def serve() -> None:
        async with serving(**options) as running:  # type: ignore[arg-type]  # what a test wants
            started.append((running.urls[None], running))
            ready.set()
            await asyncio.to_thread(end.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert ready.wait(PATIENCE)
        yield started[0]
    finally:
        end.set()
        thread.join(PATIENCE)


def say(remote: RemoteSession | Session, line: str) -> str:
    """What a command shows, as text."""
    out = []
    for page in remote.execute(line):
        if isinstance(page, Line):
            out.append(page.text)
        elif isinstance(page, Grid):
            out += [page.title, *("|".join(map(str, row)) for row in page.rows)]
    return "\n".join(out)


SCRIPT = (
    "publish 1000 DOT/USD 7.42 100",
    "subscribe 2000 1000 DOT/USD",
    "subscribe 2000 1000 X/Y",
    "subscriptions",
    "step 4",
    "deliveries",
    "deliveries 2000 2",
    "subscriptions 2000",
    "child",
    "child 1000",
    "child 1000 DOT/USD",
    "cheat 2000 omit-node",
    "collators",
    "publish 1000 DOT/USD 7.43 100",
    "until verdict",
    "to 9",
    "verdicts",
    "verdicts 1000",
    "ledger 2000",
    "ledger 2000 4",
    "storage relay",
    "storage relay Broadcaster.PublishedKeys",
    "storage 2000 ProcessedRoots",
    "cache 2000",
    "cache 2000 1000",
    "cursor",
    "honest 2000",
    "order 2000 redeliver 1000",
    "until delivery 2000",
    "unsubscribe 2000 1000 X/Y",
    "step 2",
    "delete 1000 1000/0",
    "until removal any 9",
    "delete 1000 1000/0",
    "strategies",
    "runtime 2000",
)


def test_a_session_over_a_node_has_the_words_and_tables_of_one_over_a_network() -> None:
    """Line for line, the proofs that states are read by included."""
    local = Session(load_bundled("node"), accounts=True)
    say(local, "step")
    with node() as (url, _), RemoteSession(url) as remote:
        assert "best block 1, final block 1" in say(remote, "status")
        for line in SCRIPT:
            assert say(remote, line) == say(local, line), line
        assert "refused: a call on the relay chain" in say(remote, "step")


def test_a_session_over_a_node_keeps_moments_and_goes_back() -> None:
    with node() as (url, running), RemoteSession(url) as remote:
        say(remote, "step 3")
        assert say(remote, "save a") == "saved as a: relay block 4"
        say(remote, "set relay Babe.EpochIndex 12")
        assert "12" in say(remote, "storage relay Babe.EpochIndex")
        assert say(remote, "item relay Babe.EpochIndex") == "Babe.EpochIndex: 12"
        say(remote, "save b")
        assert say(remote, "restore a") == "back at a: the network is at relay block 4; gone with what came after: b"
        assert "12" not in say(remote, "storage relay Babe.EpochIndex")
        assert "a|snapshot|4|0x" in say(remote, "snapshots")
        say(remote, "step 2")
        assert say(remote, "restore a") == "back at a: the network is at relay block 4"
        assert say(remote, "head 2") == "the network is at relay block 2"
        assert running.server.live.network.number == 2
        assert say(remote, "forget a") == "dropped a"
        for line, why in (
            ("restore a", "there are none"),
            ("to 2", "already at relay block 2"),
            ("save now", "`now` means"),
        ):
            with pytest.raises(CommandError, match=why):
                say(remote, line)


def test_help_completion_and_what_only_a_node_has() -> None:
    with node() as (url, _), RemoteSession(url) as remote:
        say(remote, "step 3")
        assert "number|4" in say(remote, "headers relay")
        assert "Paras.NewHeadNoted" in say(remote, "events relay")
        assert "Subscriber.DataProcessed(publisher 1000" in say(remote, "events 2000 3")
        assert "1000|" in say(remote, "publishers")
        assert "included" in say(remote, "candidates 2000 3")
        assert "node relay chain" in say(remote, "call system_chain")
        assert remote.complete("sub") == ["subscribe", "subscriptions"]
        assert remote.complete("child ") == ["1000", "2000"]
        assert remote.complete("until ver") == ["verdict"]
        listed = say(remote, "help")
        for each in COMMANDS:
            assert each.summary in listed
            assert each.summary in say(remote, f"help {each.name}")
        with pytest.raises(CommandError, match="a network of its own; `pubsub serve --journal FILE`"):
            say(remote, "write x.json")
        with pytest.raises(CommandError, match="to change a runtime is for a session over a network of its own"):
            say(remote, "runtime 2000 cache none")


def test_what_a_node_does_not_do_is_one_line() -> None:
    with node(dev=False) as (url, _), RemoteSession(url) as remote:
        with pytest.raises(CommandError, match=r"start it with `pubsub serve --dev`$"):
            say(remote, "step")
        with pytest.raises(CommandError, match="did you mean step"):
            say(remote, "stepp")
        with pytest.raises(CommandError, match="there is no parachain 7; there are 1000, 2000"):
            say(remote, "subscriptions 7")
        with pytest.raises(NodeRefused):
            say(remote, "call chain_getBlockHash no")
    for url in ("ws://127.0.0.1:1", "http://127.0.0.1:1", "ws://localhost:1"):
        with pytest.raises(NodeUnavailable, match=f"^nobody listens at {url}"), RemoteSession(url):
            pass


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
    with node() as (url, running), RemoteSession(url) as remote:
        say(remote, "cheat 2000 omit-node")
        say(remote, "step 12")
        done = CliRunner().invoke(pubsub, ["explore", "--connect", url, "--blocks", "8", "--out", str(out)])
        assert done.exit_code == 0, done.stderr
        page = open_page(out.read_text(encoding="utf-8"))
        kept = running.server.timeline.moments()[-9:]
        drawn = open_page(LivePage(load_bundled("node")).explore(running.server.live.network, kept))
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
    with node() as (url, _), RemoteSession(url) as remote:
        say(remote, "step 3")
        done = CliRunner().invoke(pubsub, ["explore", "--connect", url, "--out", str(tmp_path / "x.html")])
        assert done.exit_code != 0
        assert "the node says BadSeal, executing it gives valid" in str(done.stderr) + str(done.exception)
        assert not (tmp_path / "x.html").exists()
