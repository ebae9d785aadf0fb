"""Commands that build blocks: a number of them, up to a height, or until something happens."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from pubsub_emulator.files.pages import Doing, Line, Shown
from pubsub_emulator.primitives.words import counted
from pubsub_emulator.runtime.parachain.block import Verdict
from pubsub_emulator.session.answers import Built, RelayBlockOutcome
from pubsub_emulator.session.command import CommandError, SessionCommand, command, number, unknown
from pubsub_emulator.session.node_api import RELAY
from pubsub_emulator.session.session import Session

STEPPING: Final[list[SessionCommand]] = []


def summary(session: Session, block: RelayBlockOutcome) -> Iterator[Line]:
    """Yield a line about a relay block, and a line with the reason for each request that failed."""
    events = session.events(RELAY, block.hash)
    valid = len(block.valid)
    parts = [f"{valid} parachain block{'' if valid == 1 else 's'}"]
    if block.refused:
        counted = sorted(Counter(str(refused.verdict) for refused in block.refused).items())
        verdicts = ", ".join(name if times == 1 else f"{name} {times}" for name, times in counted)
        parts.append(f"{len(block.refused)} refused ({verdicts})")
    removed = sum(built.removed for built in block.blocks)
    delivered = sum(built.delivered for built in block.blocks) - removed
    names = Counter((event.pallet, event.name) for event in events)
    counts = {
        "published": names["Broadcaster", "DataPublished"],
        "expired": names["Broadcaster", "KeyExpired"],
        "delivered": delivered,
        "removed": removed,
    }
    parts += [f"{count} {outcome}" for outcome, count in counts.items() if count]
    yield Line(f"relay block {block.number}: {', '.join(parts)}")
    for failure in block.failures:
        if failure.instruction is None:
            yield Line(f"  refused: the message of {failure.para} was not executed: {failure.why}")
        else:
            yield Line(
                f"  refused: instruction {failure.instruction} of the message of {failure.para}:"
                f" {failure.why}"
            )
    for event in events:
        if event.error:
            yield Line(f"  refused: a call on the relay chain: {event.error}")
    for idle in block.idle:
        yield Line(f"  {idle.para} could not build: {idle.why}")


@command(STEPPING, "step [BLOCKS]", "step", "step 10", "n", aliases=("n", "next"))
def _step(session: Session, blocks: str = "1") -> Iterator[Shown]:
    """Build relay blocks (default 1).

    Each contains the scenario's traffic and what was requested since the last block.
    After the scenario's last block its publishers continue as before.
    """
    yield from _build(session, number(blocks, "BLOCKS is a whole number, at least 1", 1))


@command(STEPPING, "to BLOCK", "to 100")
def _to(session: Session, height: str) -> Iterator[Shown]:
    """Build relay blocks up to a height."""
    target = number(height, "BLOCK is the height of a relay block")
    now = session.number
    if target <= now:
        raise CommandError(
            f"the network is already at relay block {now}; `restore` and `head` go back"
        )
    yield from _build(session, target - now)


def _build(session: Session, blocks: int) -> Iterator[Shown]:
    """Build some relay blocks, and yield a summary of each."""
    for done in range(1, blocks + 1):
        yield from summary(session, session.advance())
        yield Doing("building blocks", done, blocks)


@command(
    STEPPING,
    "until WHAT [WHICH] [MOST]",
    "until verdict",
    "until verdict OmittedBelowBudget",
    "until delivery 3000",
    "until event KeyExpired 50",
    words={"WHAT": ("verdict", "delivery", "removal", "stop", "event")},
)
def _until(
    session: Session, kind: str, subject: str = "any", limit: str = "1000"
) -> Iterator[Shown]:
    """Build relay blocks until something happens; the block in which it happens is the last one.

    verdict [NAME]    a parachain block is refused
    delivery [PARA]   a subscriber receives a value
    removal [PARA]    a subscriber learns that a key was removed
    stop [PARA]       a subscriber stops reading at its budget
    event NAME        an event is deposited, on any chain
    WHICH may be `any`. `until` gives up after MOST blocks (default 1000).
    """
    most = number(limit, "MOST is a number of blocks, at least 1", 1)
    has_happened = _condition(session, kind, None if subject == "any" else subject)
    for done in range(1, most + 1):
        block = session.advance()
        if has_happened(block):
            yield from summary(session, block)
            return
        yield Doing(f"waiting for a {kind}", done, most)
    raise CommandError(
        f"no such {kind} within {counted(most, 'block')};"
        f" the network is at relay block {session.number}"
    )


def _event_names(session: Session, block: RelayBlockOutcome) -> Iterator[str]:
    """Yield the names of the events of a relay block, and of the blocks that became valid in it."""
    yield from (event.name for event in session.events(RELAY, block.hash))
    for built in block.valid:
        yield from (event.name for event in session.events(str(built.para), built.hash))


def _condition(
    session: Session, kind: str, subject: str | None
) -> Callable[[RelayBlockOutcome], bool]:
    """Return a predicate for the event that `until` waits for.

    Raises `CommandError` for an unknown verdict or parachain.
    """
    if kind == "verdict":
        known = [verdict.value for verdict in Verdict]
        if subject is not None and subject not in known:
            raise unknown("verdict", subject, known)
        return lambda block: any(
            subject in {None, candidate.verdict} for candidate in block.refused
        )
    if kind == "event":
        if subject is None:
            raise CommandError(
                "WHICH is missing: name an event, for example `until event KeyExpired`"
            )
        name = subject.rpartition(".")[2]
        return lambda block: name in _event_names(session, block)
    para = None if subject is None else session.para(subject, "WHICH is a parachain's id")
    count: Callable[[Built], int] = {
        "stop": lambda built: built.stopped,
        "removal": lambda built: built.removed,
        "delivery": lambda built: built.delivered - built.removed,
    }[kind]
    return lambda block: any(
        count(candidate) for candidate in block.valid if para in {None, candidate.para}
    )
