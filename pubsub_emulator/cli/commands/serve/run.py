"""`pubsub serve`: serves a scenario's network with its journal and history until an interrupt."""

import asyncio
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pubsub_emulator.cli.base.ending import asked_to_end
from pubsub_emulator.cli.base.forks import forks_told, opened
from pubsub_emulator.cli.exits import INTERRUPTED
from pubsub_emulator.cli.screen import log_lines, say
from pubsub_emulator.emulator.network.actions import LAST_SLOT
from pubsub_emulator.emulator.network.records import Observer
from pubsub_emulator.emulator.relay.runtime import GENESIS_SLOT, AddedPallet
from pubsub_emulator.emulator.scenario.file import find_scenario
from pubsub_emulator.emulator.scenario.model import Scenario
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.files.untrusted import read_bytes
from pubsub_emulator.node.chain import journal
from pubsub_emulator.node.chain.block import RELAY
from pubsub_emulator.node.chain.journal_file import JournalFile, new_journal
from pubsub_emulator.node.chain.live import LiveNetwork, Observers
from pubsub_emulator.node.server.options import BadOption, Options
from pubsub_emulator.node.server.server import Server
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.words import counted
from pubsub_emulator.runs.run import HISTORY
from pubsub_emulator.runtime.rules import SHIPPED, Rules

_SLOT: Final = 6000
PHRASE: Final = "bottom drive obey lake curtain smoke basket hold race lonely fit walk"
"""Substrate's development phrase: the accounts are below it, at `//Alice` and so on."""


@dataclass(frozen=True, slots=True)
class Serve:
    """The arguments of `serve`; `options` are the server's."""

    options: Options
    genesis_time: str | None = None
    pallets: Mapping[str, AddedPallet] = field(default_factory=dict)
    """Pallets to be added to the relay chain, by the options that add them."""
    journal: Path | None = None
    replay: Path | None = None
    out: Path | None = None
    fork: str | None = None
    fork_para: tuple[str, ...] = ()
    rules: Rules = SHIPPED


def serve(
    name: str | None, request: Serve, opened_page: Callable[[str], object] | None = None
) -> None:
    """Serve a network until Ctrl-C, which gives exit code 130.

    `name` is the scenario, unless a journal is replayed. `opened_page` gets the address of the
    live page. Raises `PubsubError`.
    """
    from pubsub_emulator.explorer.live import LivePage

    log_lines()
    options = request.options
    options.check()
    if request.pallets and (request.journal is not None or request.replay is not None):
        refused = f"{' and '.join(request.pallets)} cannot be given with --journal or --replay"
        raise BadOption(f"a journal does not record pallets: {refused}")
    if (request.fork or request.fork_para) and (request.journal or request.replay or request.out):
        refused = "--fork cannot be given with --journal, --replay or --out"
        raise BadOption(f"a journal or history cannot hold a forked state: {refused}")
    replayed = None
    if request.replay is not None:
        data = read_bytes(request.replay, journal.MOST_BYTES, journal.BadJournal)
        replayed = journal.read_journal(data, str(request.replay), request.rules)
        if replayed.cut:
            say(f"{request.replay}: the last line was cut and is left out")
    if replayed is None:
        scenario = find_scenario(name or "node", request.rules)
        slot = _genesis_slot(request.genesis_time)
    elif name is None:
        scenario = replayed.head.scenario
        slot = replayed.head.genesis_slot
    else:
        raise BadOption(f"{request.replay} names its scenario; give no SCENARIO with --replay")
    with ExitStack() as stack:
        observers = None if request.out is None else _histories(stack, request.out, scenario)
        keeps = options.dev or replayed is not None
        forks = stack.enter_context(opened(request.fork, request.fork_para))
        simulation = Simulation(
            scenario,
            genesis_slot=slot,
            accounts=True,
            added=tuple(request.pallets.values()),
            forks=forks,
            rules=request.rules,
        )
        for line in forks_told(forks):
            say(line)
        live = LiveNetwork(simulation, observers, keep_snapshots=keeps)
        writer = None
        if request.journal is not None:
            head = journal.JournalHead(scenario, slot, request.rules.digest)
            writer = stack.enter_context(new_journal(request.journal, head))
        server = Server(live, options, writer, LivePage(scenario))
        asyncio.run(_serve(server, replayed, str(request.replay), writer, opened_page))
    sys.exit(INTERRUPTED)


async def _serve(
    server: Server,
    replayed: journal.Journal | None,
    name: str,
    writer: JournalFile | None,
    opened_page: Callable[[str], object] | None,
) -> None:
    """Replay a journal if there is one, and serve until the process is asked to end.

    `name` is the journal's name in errors. `opened_page` opens the live page in a browser.
    """
    ended = asked_to_end()
    if replayed is not None:
        await server.producer.replay(replayed, name)
        say(f"replayed {counted(len(replayed.entries), 'step')}, hash by hash")
    if server.options.external:
        say("others can reach this node, and Alice, whose key is public, controls it")
    async with server.serving() as places:
        if writer is not None:
            # From here on somebody may see the blocks, so an error must not remove the journal.
            writer.kept = True
        for place in places:
            chain = "relay chain" if place.chain is RELAY else f"parachain {place.chain}"
            say(f"{chain}: {place.url}")
        if server.options.dev:
            tell_accounts()
        page = re.sub("^ws", "http", places[0].url)
        say(f"see, step and attack it in a browser: {page}")
        if opened_page is not None:
            opened_page(page)
        say("Ctrl-C ends it")
        await ended.wait()


def tell_accounts() -> None:
    """Print the development accounts with their keys, which everybody knows."""
    from pubsub_emulator.client.extrinsics import development_seed
    from pubsub_emulator.runtime.accounts.endowed import ED25519, ENDOWMENT, NAMES, SR25519, UNIT

    say(f"development accounts, {ENDOWMENT // UNIT:,} tokens each; everybody knows their keys:")
    say(f"  phrase            {PHRASE}")
    for name, sr25519, ed25519 in zip(NAMES, SR25519, ED25519, strict=True):
        say(f"  //{name:8} sr25519 {hexed(sr25519)}")
        say(f"             ed25519 {hexed(ed25519)}, seed {hexed(development_seed(name))}")


def _genesis_slot(text: str | None) -> int:
    """Return the slot of a genesis time, `now` or milliseconds since 1970. Raises `BadOption`."""
    if text is None:
        return GENESIS_SLOT
    if text == "now":
        return int(time.time() * 1000) // _SLOT
    if not re.fullmatch("[0-9]{1,19}", text) or int(text) // _SLOT > LAST_SLOT:
        raise BadOption(f"--genesis-time is `now` or milliseconds since 1970, not {text!r}")
    return int(text) // _SLOT


def _histories(stack: ExitStack, out: Path, scenario: Scenario) -> Observers:
    """Return the function that makes the observers of each fork of the chain.

    They write its history. The history of an abandoned fork ends where the next one begins.
    """
    from pubsub_emulator.files.output import new_folder
    from pubsub_emulator.spark_audit.history.store import HistoryWriter

    folder = stack.enter_context(new_folder(out))
    open_one = stack.enter_context(ExitStack())

    def observers(epoch: int) -> Iterable[Observer]:
        """Close the history of the fork before, and open that of fork number `epoch`, from 1 on."""
        open_one.close()
        name = scenario.name if epoch == 1 else f"{scenario.name}-{epoch}"
        return (
            open_one.enter_context(HistoryWriter(folder / HISTORY, name, names=scenario.names())),
        )

    return observers
