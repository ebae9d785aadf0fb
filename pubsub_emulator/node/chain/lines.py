"""Writes a node's history in other forms: as a session of `pubsub step`, or as a scenario.

A session is a file in the format `pubsub-session/1`. Its commands are the lines that a user would
type in `pubsub step`.
"""

import json
import shlex
from typing import Final

from pubsub_emulator.emulator.network import actions
from pubsub_emulator.emulator.relay.runtime import GENESIS_SLOT
from pubsub_emulator.emulator.scenario.check import check
from pubsub_emulator.emulator.scenario.model import Acts
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.node.chain.block import AppliedActs, Moment
from pubsub_emulator.node.chain.live import LiveNetwork
from pubsub_emulator.primitives.draws import MILLION
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.types import RelayBlockNumber

FORMAT: Final = "pubsub-session/1"


class NoSession(PubsubError):
    """A network with a property that a session file cannot record."""


def line(action: actions.Action) -> str:
    """Return the command of `pubsub step` that applies an action.

    An action without a command of its own becomes `act` with the action as JSON.
    """
    match action:
        case actions.Publish():
            words = ["publish", action.para, hexed(action.key), hexed(action.value), action.ttl]
        case actions.Delete():
            words = ["delete", action.para, *map(hexed, action.keys)]
        case actions.AddKeys() | actions.DropKeys():
            name = "subscribe" if isinstance(action, actions.AddKeys) else "unsubscribe"
            words = [name, action.para, action.publisher, *map(hexed, action.keys)]
        case actions.Limit():
            words = ["runtime", action.para, action.name, action.value]
        # The command has the rate after the collator, so it cannot express a rate alone.
        case actions.Cheat() if action.collator is not None or action.rate == MILLION:
            words = ["cheat", action.para, ",".join(action.strategies)]
            if action.collator is not None:
                words += [action.collator, action.rate / MILLION]
        case actions.Honest() | actions.Turn() | actions.Deregister():
            words = [action.kind, action.para]
        case actions.Register():
            words = ["register", action.para, *([] if action.deposit is None else [action.deposit])]
        case actions.Offline():
            words = ["offline" if action.offline else "online", action.para]
        case _:
            words = [
                "act",
                json.dumps(
                    action.model_dump(mode="json", exclude_defaults=True), separators=(",", ":")
                ),
            ]
    return shlex.join(map(str, words))


def session_document(live: LiveNetwork, moment: Moment) -> dict[str, object]:
    """Return the session file that leads to a moment.

    Raises `NoSession` if the network differs from those that `pubsub step` can create.
    """
    relay = live.network.config.relay
    if relay.genesis_slot != GENESIS_SLOT or relay.added:
        raise NoSession("a session file records neither another genesis time nor added pallets")
    commands = _commands(moment, live.network.relay.first)
    return document(live.simulation, commands, moment.number, moment.relay.hash)


def document(
    simulation: Simulation, commands: list[str], number: int, name: bytes
) -> dict[str, object]:
    """Return a session file with these commands.

    `number` and `name` are the height and hash of the relay block to which the commands lead.
    `pubsub step` verifies that it arrives at the same block.
    """
    return {
        "format": FORMAT,
        "scenario": simulation.scenario.document(),
        **({"accounts": True} if simulation.accounts else {}),
        **({"fork": simulation.forks.roots()} if simulation.forks else {}),
        **({"rules": hexed(simulation.rules.digest)} if simulation.rules.digest else {}),
        "commands": commands,
        "block": number,
        "hash": hexed(name),
    }


def scenario_document(live: LiveNetwork, moment: Moment) -> tuple[dict[str, object], list[str]]:
    """Return a scenario that builds the blocks up to a moment, with remarks.

    The remarks are lines of text. They name the expected relay block, and the settings for which a
    scenario has no field. Raises `NoSession`.
    """
    session = session_document(live, moment)
    started = live.simulation.scenario
    first = live.network.relay.first
    acts = []
    for past in _past(moment):
        repeatable = [action for action in past.actions if not isinstance(action, actions.Rewind)]
        block = RelayBlockNumber(past.after + 1 - first)
        acts.append(Acts(at_block=block, do=tuple(repeatable)))
    length = max(moment.number - first, 1)
    update = {
        "acts": (*acts, *started.acts),
        "accounts": live.simulation.accounts,
        "relay_blocks": length,
    }
    scenario = started.model_copy(update=update)
    # Acts after the last block are invalid. If the scenario has such acts, it keeps its own length.
    if check(scenario, live.simulation.rules):
        scenario = started.model_copy(
            update={**update, "relay_blocks": max(length, started.relay_blocks)}
        )
    number = session["block"]
    name = session["hash"]
    unsupported = [
        f"{setting}: {json.dumps(session[setting])}"
        for setting in ("fork", "rules")
        if setting in session
    ]
    if unsupported:
        return scenario.document(), [
            f"relay block {number} of the session is {name}; this scenario has no field for:",
            *unsupported,
        ]
    return scenario.document(), [f"relay block {number} of this scenario is {name}"]


def _past(moment: Moment) -> list[AppliedActs]:
    """Return all actions before a moment, the oldest first."""
    newest_first: list[AppliedActs] = []
    acts = moment.acts
    while acts is not None:
        newest_first.append(acts)
        acts = acts.before
    return newest_first[::-1]


def _commands(moment: Moment, first: int) -> list[str]:
    """Return the commands of a session: actions, and `step` for the blocks between them.

    `first` is the height at which the session begins.
    """
    lines: list[str] = []
    height = first
    for acts in _past(moment):
        if acts.after > height:
            lines.append(f"step {acts.after - height}")
        lines += map(line, acts.actions)
        height = acts.after
    if moment.number > height:
        lines.append(f"step {moment.number - height}")
    return lines
