"""Commands that have a node build blocks: one by one, up to a height, up to something that happens."""

from collections.abc import Callable, Iterator
from functools import partial

from pubsub_emulator.cli.pages import Doing, Line, Shown, words
from pubsub_emulator.cli.session.command import Given
from pubsub_emulator.cli.session.remote.blocks import Told, block_at, events_of, line_of, relay_events
from pubsub_emulator.cli.session.remote.connection import Remote
from pubsub_emulator.cli.session.session import number
from pubsub_emulator.cli.session.stepping import blocks_to, wait


def _advance(remote: Remote) -> Told:
    """One relay block."""
    remote.ask("dev_newBlock", {"count": 1})
    return block_at(remote, remote.number)


def _build(remote: Remote, blocks: int) -> Iterator[Shown]:
    for done in range(1, blocks + 1):
        yield from _told(remote, _advance(remote))
        yield Doing("building blocks", done, blocks)


def _told(remote: Remote, told: Told) -> Iterator[Shown]:
    events = relay_events(remote, told.number)
    yield line_of(told, events)
    for each in events:
        match each.pallet, each.name:
            case "System", "ExtrinsicFailed":
                yield Line(f"  refused: a call on the relay chain: {words(each.fields.get('dispatch_error'))}")
            case "MessageQueue", "ProcessingFailed":
                yield Line(f"  refused: a message of {words(each.fields.get('origin'))} was not executed")
            case "MessageQueue", "Processed" if each.fields.get("success") is False:
                yield Line(f"  refused: an instruction of a message of {words(each.fields.get('origin'))} failed")


def step(remote: Remote, given: Given) -> Iterator[Shown]:
    """Let the node build BLOCKS relay blocks, and show each."""
    yield from _build(remote, number(given.maybe("BLOCKS") or "1", "BLOCKS is a whole number, at least 1", 1))


def to(remote: Remote, given: Given) -> Iterator[Shown]:
    """Let the node build up to a relay block, and show each new one."""
    yield from _build(remote, blocks_to(given, remote.number, "head"))


def until(remote: Remote, given: Given) -> Iterator[Shown]:
    """Let the node build until a condition is met, and show that block. Raises `CommandError` if none meets it."""
    told = yield from wait(given, partial(_condition, remote), partial(_advance, remote), lambda: remote.number)
    yield from _told(remote, told)


def _condition(remote: Remote, what: str, which: str | None) -> Callable[[Told], bool]:
    """What `until` waits for. Raises `CommandError` for an unknown parachain."""
    if what == "verdict":
        return lambda told: any(which in {None, each["verdict"]} for each in told.refused)
    if what == "event":
        return lambda told: any(each == which for each in _event_names(remote, told))
    para = None if which is None else remote.known(number(which, "WHICH is a parachain's id"))
    if what == "stop":
        return lambda told: any(_stopped(remote, each) for each in _valid(told) if para in {None, each["para"]})
    gone = what == "removal"
    return lambda told: any((each["value"] is None) == gone for each in told.deliveries if para in {None, each["para"]})


def _valid(told: Told) -> list[dict[str, object]]:
    return [dict(each) for each in told.candidates if each["status"] != "rejected"]


def _stopped(remote: Remote, candidate: dict[str, object]) -> bool:
    found = remote.ask("pubsub_ledger", candidate["para"], candidate["hash"])
    return found is not None and bool(found["stopped"])


def _event_names(remote: Remote, told: Told) -> Iterator[str]:
    yield from (each.name for each in relay_events(remote, told.number))
    for block in _valid(told):
        yield from (each.name for each in events_of(remote, str(block["para"]), str(block["hash"])))
