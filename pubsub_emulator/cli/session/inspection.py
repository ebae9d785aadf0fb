"""Commands that show what happened: chains, blocks, ledgers, deliveries, verdicts, collators."""

from collections.abc import Iterable, Iterator
from typing import Final, Protocol

from pubsub_emulator.cli.blocks import delivery_rows, ledger_pages, refusal_rows
from pubsub_emulator.cli.forks import forks_told
from pubsub_emulator.cli.pages import Grid, Line, Shown, words
from pubsub_emulator.cli.session.command import CommandError, Given, Kind, Parameter, look
from pubsub_emulator.cli.session.session import Session, number
from pubsub_emulator.collator.cheats import STRATEGIES
from pubsub_emulator.emulator.network import Step
from pubsub_emulator.emulator.network.records import BlockRecord
from pubsub_emulator.emulator.seeded import MILLION
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.framework.events import EventRecord


def _status(session: Session, _given: Given) -> Iterator[Shown]:
    network, scenario = session.network, session.scenario
    at = f"relay block {network.number} of {scenario.relay_blocks} in the scenario"
    if session.forks.relay is not None:
        done = f"{network.number - network.relay.first} of {scenario.relay_blocks} blocks of the scenario"
        at = f"relay block {network.number}, {done}"
    yield Line(f"{scenario.name}: {at}, branch {session.branch}")
    yield from map(Line, forks_told(session.forks))
    yield Grid(
        "parachains",
        ("parachain", "block", "subscribed keys", "collators", "cheating", "waiting to be sent"),
        tuple(
            (
                str(para),
                chain.header.number,
                sum(map(len, chain.spec().subscriptions.values())),
                len(chain.collators),
                sum(bool(each.strategies and each.rate) for each in chain.collators),
                len(chain.publishes) + len(chain.upward) + len(chain.horizontal),
            )
            for para, chain in network.parachains.items()
        ),
    )


def _headers(session: Session, given: Given) -> Iterator[Shown]:
    chain = given.maybe("CHAIN")
    network = session.network
    found: list[tuple[str, Header]] = []
    if chain in (None, "relay"):
        found.append(("relay", network.relay.header))
    if chain != "relay":
        found += [(str(each.para), each.header) for each in session.chains(chain)]
    for name, header in found:
        fields: list[tuple[str, str | int]] = [
            ("number", header.number),
            ("hash", words(header.hash())),
            ("parent", words(header.parent_hash)),
            ("state root", words(header.state_root)),
            ("extrinsics root", words(header.extrinsics_root)),
        ]
        if (slot := header.aura_slot()) is not None:
            fields.append(("slot", slot))
        yield Grid(f"newest header of {name}", ("field", "value"), tuple((a, str(b)) for a, b in fields))


def _events(session: Session, given: Given) -> Iterator[Shown]:
    chain = given.maybe("CHAIN") or "relay"
    step = _step_at(session, given.maybe("BLOCK"))
    if chain == "relay":
        yield _event_grid(f"events of relay block {step.number}", step.block.events)
        return
    para = session.chain(number(chain, "a chain is `relay` or a parachain's id")).para
    for record in _of(step, para):
        if record.outcome is not None:
            title = f"events of block {record.candidate.header.number} of {para}, in relay block {step.number}"
            yield _event_grid(title, record.outcome.events)


def _event_grid(title: str, events: tuple[EventRecord, ...]) -> Grid:
    return Grid(title, ("phase", "event"), tuple((_phase(each), words(each.event)) for each in events))


def _phase(record: EventRecord) -> str:
    index = getattr(record.phase, "index", None)
    return type(record.phase).__name__ if index is None else f"extrinsic {index}"


def _step_at(session: Session, text: str | None) -> Step:
    """The step of that height, or the newest one. Raises `CommandError`."""
    if not session.steps:
        raise CommandError("no block has been built yet; `step` builds one")
    if text is None:
        return session.steps[-1]
    wanted = number(text, "BLOCK is the height of a relay block")
    first, last = session.steps[0].number, session.steps[-1].number
    if not first <= wanted <= last:
        raise CommandError(f"relay block {wanted} is not in memory; blocks {first} to {last} are")
    return session.steps[wanted - first]


def _of(step: Step, para: ParaId) -> list[BlockRecord]:
    records = [record for record in step.records if record.chain == para]
    if not records:
        raise CommandError(f"{para} built no block in relay block {step.number}")
    return records


def _newest(session: Session, given: Given) -> list[Step]:
    blocks = number(given.maybe("BLOCKS") or "10", "BLOCKS is a number of relay blocks, at least 1", 1)
    return session.steps[-blocks:]


def _deliveries(session: Session, given: Given) -> Iterator[Shown]:
    wanted = {chain.para for chain in session.chains(given.maybe("SUBSCRIBER"))}
    records = [record for step in _newest(session, given) for record in step.records if record.chain in wanted]
    yield Grid("deliveries", *delivery_rows(records, session.key_name))


def _verdicts(session: Session, given: Given) -> Iterator[Shown]:
    wanted = {chain.para for chain in session.chains(given.maybe("PARA"))}
    records = [record for step in session.steps for record in step.refused if record.chain in wanted]
    yield Grid("refused blocks", *refusal_rows(records))


def _ledger(session: Session, given: Given) -> Iterator[Shown]:
    para = session.chain(number(given.one("SUBSCRIBER"), "a subscriber's id is a whole number")).para
    at = given.maybe("BLOCK")
    steps = [_step_at(session, at)] if at is not None else list(reversed(session.steps))
    for step in steps:
        found = [record for record in step.records if record.chain == para and record.outcome is not None]
        for record in found:
            if record.outcome is not None:
                title = f"block {record.candidate.header.number} of {para}, in relay block {step.number}"
                yield from ledger_pages(title, record.outcome.ledger)
        if found:
            return
    raise CommandError(f"{para} built no valid block{' there' if at is not None else ' yet'}")


def _subscriptions(session: Session, given: Given) -> Iterator[Shown]:
    for chain in session.chains(given.maybe("SUBSCRIBER"), subscribers=True):
        spec = session.spec(chain.para)
        waiting = " (sent, not in force yet)" if chain.para in session.wanted else ""
        yield Grid(
            f"subscriptions of {chain.para}{waiting}",
            ("publisher", "keys", "which"),
            tuple((str(p), len(keys), few(session, keys)) for p, keys in spec.subscriptions.items()),
        )


class KeyNames(Protocol):
    """Gives keys their names."""

    def key_name(self, key: bytes) -> str:
        """A key by the name it was made from, if that is known."""


def few(names: KeyNames, keys: Iterable[bytes], most: int = 6) -> str:
    """Keys by name, the first ones."""
    listed = sorted(names.key_name(key) for key in keys)
    return ", ".join(listed[:most]) + (f" and {len(listed) - most} more" if len(listed) > most else "")


def _collators(session: Session, given: Given) -> Iterator[Shown]:
    found = [
        (str(chain.para), at, words(each.key), habit(each.strategies, each.rate))
        for chain in session.chains(given.maybe("PARA"), subscribers=True)
        for at, each in enumerate(chain.collators, start=1)
    ]
    yield Grid("collators", ("parachain", "collator", "key", "tries"), tuple(found))


def habit(strategies: tuple[str, ...], rate: int) -> str:
    """What a collator tries, in words; `rate` in millionths."""
    if not strategies or not rate:
        return "nothing: honest"
    often = "" if rate == MILLION else f" in {rate / MILLION:.0%} of its turns"
    return ", ".join(strategies) + often


def strategies(_session: object, _given: Given) -> Iterator[Shown]:
    """One row per strategy: what it tries to gain, and the verdicts it must meet."""
    found = (
        (each.name, each.gain, ", ".join(verdict.value for verdict in each.meets) or "depends on the case")
        for each in STRATEGIES.values()
    )
    yield Grid("strategies", ("name", "tries to gain", "verdict"), tuple(found))


_SUBSCRIBER: Final = Parameter("SUBSCRIBER", Kind.SUBSCRIBER)
_ANY_SUBSCRIBER: Final = Parameter("SUBSCRIBER", Kind.SUBSCRIBER, optional=True)
_ANY_CHAIN: Final = Parameter("CHAIN", Kind.CHAIN, optional=True)
_ANY_PARA: Final = Parameter("PARA", Kind.PARA, optional=True)
_AT_BLOCK: Final = Parameter("BLOCK", Kind.NUMBER, optional=True)
_BLOCKS: Final = Parameter("BLOCKS", Kind.NUMBER, optional=True)

INSPECTION: Final = (
    look("status", "Show the network: chains, heights, messages waiting to be sent.", _status, aliases=("s",)),
    look("headers", "Show the newest headers.", _headers, (_ANY_CHAIN,), ("headers", "headers 3000")),
    look(
        "events",
        "Show the events of the newest relay block, or of an earlier block in memory.",
        _events,
        (_ANY_CHAIN, _AT_BLOCK),
        ("events", "events relay 7", "events 3000"),
        "The default CHAIN is relay. BLOCK is the height of a relay block, also for a parachain's events.",
    ),
    look(
        "deliveries",
        "Show what subscribers received in the newest relay blocks (default 10).",
        _deliveries,
        (_ANY_SUBSCRIBER, _BLOCKS),
        ("deliveries", "deliveries 3000 50"),
    ),
    look(
        "verdicts",
        "Show refused blocks and the reasons.",
        _verdicts,
        (_ANY_PARA,),
        ("verdicts", "verdicts 3000"),
    ),
    look(
        "ledger",
        "Show what used the bytes of a subscriber's block: budget, messages, proof, by publisher.",
        _ledger,
        (_SUBSCRIBER, _AT_BLOCK),
        ("ledger 3000", "ledger 3000 12"),
        "Shows the newest block, or those in relay block BLOCK.",
        ("budget",),
    ),
    look(
        "subscriptions",
        "Show what subscribers subscribe to.",
        _subscriptions,
        (_ANY_SUBSCRIBER,),
        ("subscriptions", "subscriptions 3000"),
    ),
    look("collators", "Show who authors blocks and who cheats.", _collators, (_ANY_PARA,), ("collators 3000",)),
    look("strategies", "Show every cheating strategy, what it tries to gain, and the verdict it must get.", strategies),
)
