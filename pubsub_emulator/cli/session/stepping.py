"""Commands that build blocks: a number of them, up to a height, or until something happens."""

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from typing import Final, TypeVar

from pubsub_emulator.cli.pages import Doing, Line, Shown, words
from pubsub_emulator.cli.session.command import Command, CommandError, Given, Kind, Parameter, near_to
from pubsub_emulator.cli.session.session import Session, number
from pubsub_emulator.emulator.network import Step
from pubsub_emulator.runtime.framework.system import ExtrinsicFailed
from pubsub_emulator.runtime.pallet_pubsub.events import DataPublished, KeyExpired
from pubsub_emulator.runtime.parachain.block import Verdict
from pubsub_emulator.runtime.parachain.execute import BlockOutcome

H = TypeVar("H")

MOST: Final = 1000
"""Blocks after which `until` gives up by default."""


def summary_line(step: Step) -> Line:
    """Summarize a relay block in one line."""
    valid = [record for record in step.records if record.outcome is not None]
    deliveries = [each for record in valid if record.outcome is not None for each in record.outcome.deliveries]
    return block_line(
        step.number,
        valid=len(valid),
        verdicts=[record.refusal.verdict.value for record in step.refused if record.refusal is not None],
        published=sum(isinstance(event, DataPublished) for event in step.events),
        expired=sum(isinstance(event, KeyExpired) for event in step.events),
        delivered=len(deliveries),
        removed=sum(delivery.value is None for delivery in deliveries),
    )


def block_line(
    number: int, *, valid: int, verdicts: Sequence[str], published: int, expired: int, delivered: int, removed: int
) -> Line:
    """A relay block in one line; `delivered` counts what was `removed`, too."""
    parts = [_count(valid, "parachain block")]
    if verdicts:
        counted = sorted(Counter(verdicts).items())
        named = ", ".join(name if times == 1 else f"{name} {times}" for name, times in counted)
        parts.append(f"{len(verdicts)} refused ({named})")
    parts += [f"{published} published"] if published else []
    parts += [f"{expired} expired"] if expired else []
    parts += [f"{delivered - removed} delivered"] if delivered > removed else []
    parts += [f"{removed} removed"] if removed else []
    return Line(f"relay block {number}: {', '.join(parts)}")


def failures(session: Session, step: Step) -> Iterator[Line]:
    """Requests that failed in the newest relay block, one line each, with the reason."""
    for message in session.network.relay.executions:
        execution = message.execution
        if execution.rejected is not None:
            yield Line(f"  refused: the message of {message.para} was not executed: {execution.rejected}")
        for each in execution.failures:
            yield Line(
                f"  refused: instruction {each.index + 1} of the message of {message.para}: {each.cause or each.error}"
            )
    for event in step.events:
        if isinstance(event, ExtrinsicFailed):
            yield Line(f"  refused: a call on the relay chain: {words(event.dispatch_error)}")
    for para, reason in step.idle.items():
        yield Line(f"  {para} could not build: {reason}")


def _count(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _step(session: Session, given: Given) -> Iterator[Shown]:
    blocks = number(given.maybe("BLOCKS") or "1", "BLOCKS is a whole number, at least 1", 1)
    yield from _build(session, blocks)


def _to(session: Session, given: Given) -> Iterator[Shown]:
    yield from _build(session, blocks_to(given, session.network.number, "branch"))


def blocks_to(given: Given, now: int, other: str) -> int:
    """How many blocks `to` builds on block `now`; `other` goes back as `restore` does. Raises `CommandError`."""
    target = number(given.one("BLOCK"), "BLOCK is the height of a relay block")
    if target <= now:
        raise CommandError(f"the network is already at relay block {now}; `restore` and `{other}` go back")
    return target - now


def _build(session: Session, blocks: int) -> Iterator[Shown]:
    for done in range(1, blocks + 1):
        step = session.advance()
        yield summary_line(step)
        yield from failures(session, step)
        yield Doing("building blocks", done, blocks)


HAPPENINGS: Final = ("verdict", "delivery", "removal", "stop", "event")


def wait(
    given: Given,
    condition: Callable[[str, str | None], Callable[[H], bool]],
    advance: Callable[[], H],
    height: Callable[[], int],
) -> Generator[Doing, None, H]:
    """Build blocks until what `until` was given happens, and return that block. Raises `CommandError`."""
    what, which = given.one("WHAT"), given.maybe("WHICH")
    most = number(given.maybe("MOST") or str(MOST), "MOST is a number of blocks, at least 1", 1)
    if which == "any":
        which = None
    if what == "verdict":
        known = [verdict.value for verdict in Verdict]
        if which is not None and which not in known:
            every = f"there are {', '.join(known)}"
            raise CommandError(f"no verdict is called {which!r}; {near_to(which, known, every)}")
    elif what == "event":
        if which is None:
            raise CommandError("WHICH is missing: name an event, for example `until event KeyExpired`")
        which = which.rpartition(".")[2]
    happened = condition(what, which)
    for done in range(1, most + 1):
        block = advance()
        if happened(block):
            return block
        yield Doing(f"waiting for a {what}", done, most)
    raise CommandError(f"no such {what} within {most} blocks; the network is at relay block {height()}")


def _until(session: Session, given: Given) -> Iterator[Shown]:
    step = yield from wait(given, partial(_condition, session), session.advance, lambda: session.network.number)
    yield summary_line(step)
    yield from failures(session, step)


def _condition(session: Session, what: str, which: str | None) -> Callable[[Step], bool]:
    """The condition that `until` waits for. Raises `CommandError` for an unknown parachain."""
    if what == "verdict":
        return lambda step: any(
            record.refusal is not None and which in (None, record.refusal.verdict.value) for record in step.refused
        )
    if what == "event":
        return lambda step: (
            any(type(event).__name__ == which for event in step.events)
            or any(
                type(each.event).__name__ == which
                for record in step.records
                if record.outcome is not None
                for each in record.outcome.events
            )
        )
    para = None if which is None else session.chain(number(which, "WHICH is a parachain's id")).para

    def outcomes(step: Step) -> Iterator[BlockOutcome]:
        for record in step.records:
            if record.outcome is not None and para in (None, record.chain):
                yield record.outcome

    if what == "stop":
        return lambda step: any(outcome.plan.cursor is not None for outcome in outcomes(step))
    gone = what == "removal"
    return lambda step: any((each.value is None) == gone for outcome in outcomes(step) for each in outcome.deliveries)


STEPPING: Final = (
    Command(
        "step",
        "Build relay blocks (default 1).",
        _step,
        (Parameter("BLOCKS", Kind.NUMBER, optional=True),),
        "Each contains the scenario's traffic and what you requested since the last block.\n"
        "After the scenario's last block its publishers continue as before.",
        ("step", "step 10", "n"),
        ("n", "next"),
    ),
    Command(
        "to",
        "Build relay blocks up to a height.",
        _to,
        (Parameter("BLOCK", Kind.NUMBER),),
        examples=("to 100",),
    ),
    Command(
        "until",
        "Build relay blocks until something happens; the block in which it happens is the last one.",
        _until,
        (
            Parameter("WHAT", Kind.WORD, words=HAPPENINGS),
            Parameter("WHICH", Kind.WORD, optional=True),
            Parameter("MOST", Kind.NUMBER, optional=True),
        ),
        "verdict [NAME]    a parachain block is refused\n"
        "delivery [PARA]   a subscriber receives a value\n"
        "removal [PARA]    a subscriber learns that a key was removed\n"
        "stop [PARA]       a subscriber stops reading at its budget\n"
        "event NAME        an event is deposited, on any chain\n"
        f"WHICH may be `any`. `until` gives up after MOST blocks (default {MOST}).",
        ("until verdict", "until verdict OmittedBelowBudget", "until delivery 3000", "until event KeyExpired 50"),
    ),
)
