"""Actions as lines of `pubsub step`; a node's past as the file of a session (`pubsub-session/1`) or a scenario."""

import json
import shlex
from typing import Final

from pubsub_emulator.collator.draws import MILLION
from pubsub_emulator.emulator.network import actions
from pubsub_emulator.emulator.relay.runtime import GENESIS_SLOT
from pubsub_emulator.emulator.scenario.check import check
from pubsub_emulator.emulator.scenario.model import Acts as ScenarioActs
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.node.chain.block import Acts, Moment
from pubsub_emulator.node.chain.live import LiveNetwork
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.types import RelayBlockNumber
from pubsub_emulator.runtime.rules import chosen

FORMAT: Final = "pubsub-session/1"


class NoSession(PubsubError):
    """The network has something that no file of a session records."""


def line(action: actions.Action) -> str:
    """The line of a session that does the same: its own word where there is one, else `act` and the action as JSON."""
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
        case actions.Cheat() if action.collator is not None or action.rate == MILLION:
            which = [] if action.collator is None else [action.collator, action.rate / MILLION]
            words = ["cheat", action.para, ",".join(action.strategies), *which]
        case actions.Honest() | actions.Turn() | actions.Deregister():
            words = [action.kind, action.para]
        case actions.Register():
            words = ["register", action.para, *([] if action.deposit is None else [action.deposit])]
        case actions.Offline():
            words = ["offline" if action.offline else "online", action.para]
        case _:
            words = ["act", json.dumps(action.model_dump(mode="json", exclude_defaults=True), separators=(",", ":"))]
    return shlex.join(map(str, words))


def session_document(live: LiveNetwork, moment: Moment) -> dict[str, object]:
    """The file of a session that leads to a moment. Raises `NoSession` for what `pubsub step` does not begin with."""
    simulation, relay = live.simulation, live.network.config.relay
    if relay.genesis_slot != GENESIS_SLOT or relay.dome_events or relay.prism:
        raise NoSession("a session file records neither another genesis time nor the pallets DomeEvents and Prism")
    return document(simulation, _commands(moment, live.network.relay.first), moment.number, moment.relay.hash)


def document(simulation: Simulation, commands: list[str], number: int, name: bytes) -> dict[str, object]:
    """The file of a session on a network whose commands lead to that relay block."""
    return {
        "format": FORMAT,
        "scenario": simulation.scenario.document(),
        **({"accounts": True} if simulation.accounts else {}),
        **({"fork": simulation.forks.roots()} if simulation.forks else {}),
        **({"rules": hexed(chosen().digest)} if chosen().digest else {}),
        "commands": commands,
        "block": number,
        "hash": hexed(name),
    }


def scenario_document(live: LiveNetwork, moment: Moment) -> tuple[dict[str, object], list[str]]:
    """The scenario that builds the blocks up to a moment, and in words what no scenario says. Raises `NoSession`."""
    session, own, first = session_document(live, moment), live.simulation.scenario, live.network.relay.first
    acts = (
        ScenarioActs(
            at_block=RelayBlockNumber(each.after + 1 - first),
            do=tuple(action for action in each.actions if not isinstance(action, actions.Rewind)),  # there is none
        )
        for each in _past(moment)
    )
    length = max(moment.number - first, 1)
    update = {"acts": (*acts, *own.acts), "accounts": live.simulation.accounts, "relay_blocks": length}
    found = own.model_copy(update=update)
    if check(found):  # something is planned for later
        found = own.model_copy(update={**update, "relay_blocks": max(length, own.relay_blocks)})
    left = [f"{name}: {json.dumps(session[name])}" for name in ("fork", "rules") if name in session]
    at, name = session["block"], session["hash"]
    if left:
        return found.document(), [f"relay block {at} of the session is {name}; this scenario has no field for:", *left]
    return found.document(), [f"relay block {at} of this scenario is {name}"]


def _past(moment: Moment) -> list[Acts]:
    held: list[Acts] = []
    acts = moment.acts
    while acts is not None:
        held.append(acts)
        acts = acts.before
    return held[::-1]


def _commands(moment: Moment, first: int) -> list[str]:
    lines: list[str] = []
    at = first
    for each in _past(moment):
        lines += [f"step {each.after - at}"] if each.after > at else []
        lines += map(line, each.actions)
        at = each.after
    return [*lines, *([f"step {moment.number - at}"] if moment.number > at else [])]
