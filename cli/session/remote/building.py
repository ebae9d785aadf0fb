"""Commands that have a node build blocks: one by one, up to a height, up to something that happens."""

from collections.abc import Callable, Iterator

from pubsub_emulator.cli.pages import Doing, Line, Shown, words
from pubsub_emulator.cli.session.command import CommandError, Given, near_to
from pubsub_emulator.cli.session.remote.blocks import Told, block_at, events_of, line_of, relay_events
from pubsub_emulator.cli.session.remote.connection import Remote
from pubsub_emulator.cli.session.session import number
from pubsub_emulator.cli.session.stepping import MOST
from pubsub_emulator.runtime.parachain.block import Verdict


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
    """`step`."""
    yield from _build(remote, number(given.maybe("BLOCKS") or "1", "BLOCKS is a whole number from 1 on", 1))


def to(remote: Remote, given: Given) -> Iterator[Shown]:
    """`to`."""
    now = remote.number
    target = number(given.one("BLOCK"), "BLOCK is the height of a relay block")
    if target <= now:
        raise CommandError(f"the network is already at relay block {now}; `restore` and `head` go back")
    yield from _build(remote, target - now)


def until(remote: Remote, given: Given) -> Iterator[Shown]:
    """`until`."""
    what, detail = given.one("WHAT"), given.maybe("WHICH")
    most = number(given.maybe("MOST") or str(MOST), "MOST is a number of blocks from 1 on", 1)
    happened = _condition(remote, what, None if detail == "any" else detail)
    for done in range(1, most + 1):
        told = _advance(remote)
        if happened(told):
            yield from _told(remote, told)
            return
        yield Doing(f"waiting for a {what}", done, most)
    raise CommandError(f"no such {what} within {most} blocks; the network is at relay block {remote.number}")


def _condition(remote: Remote, what: str, which: str | None) -> Callable[[Told], bool]:
    """What `until` waits for. Raises `CommandError` for a name that nothing has."""
    if what == "verdict":
        known = [verdict.value for verdict in Verdict]
        if which is not None and which not in known:
            every = f"there are {', '.join(known)}"
            raise CommandError(f"no verdict is called {which!r}; {near_to(which, known, every)}")
        return lambda told: any(which in {None, each["verdict"]} for each in told.refused)
    if what == "event":
        if which is None:
            raise CommandError("WHICH is missing: name an event, for example `until event KeyExpired`")
        name = which.rpartition(".")[2]
        return lambda told: any(each == name for each in _event_names(remote, told))
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
