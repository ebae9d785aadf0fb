"""`pubsub icrc72 serve`: the HTTP interface of a scenario, until the program is asked to end."""

import asyncio
import sys
import time

from interchain_events.icrc72.ic.wasm.canister import WasmCanister
from interchain_events.icrc72.modules import modules_of
from interchain_events.icrc72.port.server import Port, serve
from interchain_events.icrc72.scenario import Run
from interchain_events.icrc72.scenario_file import load
from pubsub_emulator.cli.base.ending import asked_to_end
from pubsub_emulator.cli.exits import INTERRUPTED
from pubsub_emulator.cli.screen import log_lines, say
from pubsub_emulator.primitives.words import counted
from pubsub_emulator.serving.guard import Names


def serve_scenario(scenario: str, names: Names, port: int) -> None:
    """Serve a scenario that begins now until Ctrl-C, and exit with code 130.

    Raises `PubsubError`, `OSError`.
    """
    log_lines()
    run = Run(load(scenario), modules=modules_of(scenario), genesis=time.time_ns())
    run.network.make = WasmCanister
    # No digest and no findings are printed here, and the observers would store all calls of a run
    # that has no end.
    run.network.observers.clear()
    asyncio.run(_serve(run, names, port))
    sys.exit(INTERRUPTED)


async def _serve(run: Run, names: Names, number: int) -> None:
    ended = asked_to_end()
    port = Port(run, names)
    async with serve(port, names, number) as (host, bound):
        for name, principal in run.who.items():
            say(f"{name:<14} {principal.text}")
        say(f"http://{host}:{bound}: {counted(run.network.subnets, 'subnet')}; Ctrl-C ends it")
        sys.stdout.flush()
        await port.tick(ended)
