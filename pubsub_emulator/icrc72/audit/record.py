"""The notes and findings of an audit."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from pubsub_emulator.icrc72 import keys
from pubsub_emulator.icrc72.facts import Fact, FactValue, Width
from pubsub_emulator.icrc72.headers import read
from pubsub_emulator.icrc72.ic.principal import Principal
from pubsub_emulator.icrc72.ic.trace import Happening
from pubsub_emulator.icrc72.messages import Event, EventNotification, Result
from pubsub_emulator.icrc72.values import Pairs, Value


class Finding(NamedTuple):
    """A participant did something that no honest participant does."""

    cheat: str
    actor: Principal
    round: int
    evidence: str


EventKey = tuple[str, Principal, int]
"""Namespace, source and id."""

ORDER: Final = {each.name: at for at, each in enumerate(keys.HEADERS)}
PATIENCE: Final = 200
"""Rounds after which a publisher without a report is silent (RP-13a)."""


REPEATS: Final = 6
"""How often a notification comes unconfirmed before its subscriber is accused: confirmations may be lost."""


class Record:
    """Everything noted so far."""

    def __init__(self, orchestrator: Principal, broadcasters: Iterable[Principal]) -> None:
        self.orchestrator = orchestrator
        self.broadcasters = frozenset(broadcasters)
        self.findings: dict[Finding, None] = {}
        self.said: set[tuple[str, Principal]] = set()
        self._calls: dict[int, Happening] = {}
        self._configs: dict[Principal, dict[str, list[Width]]] = {}
        self._notified: dict[tuple[Principal, Principal, EventKey, int], int] = {}
        self._last: dict[tuple[Principal, Principal, str, Principal, int], int] = {}
        self._seen: list[tuple[int, Principal, Principal, EventNotification]] = []
        self._accepted: dict[tuple[Principal, EventKey], tuple[int, Event]] = {}
        self._served: dict[tuple[Principal, str, Principal], int] = {}
        self._relays: dict[tuple[Principal, str, Principal], int] = {}
        self._unsteady: set[Principal] = set()
        self._suspended: set[Principal] = set()
        self._sent: dict[tuple[str, int], Value] = {}
        self._replays: dict[int, Principal] = {}
        self._ranges: dict[int, tuple[str, int, int | None]] = {}
        self._replayed: dict[int, dict[int, int]] = {}
        self._reports: dict[int, tuple[str, int, Principal, int]] = {}
        self._ranks: dict[str, dict[Principal, int]] = {}
        self._places: dict[tuple[Principal, EventKey], dict[Principal, int]] = {}
        self._alerts: dict[tuple[Principal, int], list[tuple[Fact, FactValue]]] = {}
        self._claimed: dict[tuple[Principal, int], tuple[int, int]] = {}
        self._due: dict[tuple[Principal, int], int] = {}
        self._came: dict[tuple[Principal, Principal, int], int] = {}
        self._confirmers: set[Principal] = set()
        self._taken: dict[int, list[tuple[Principal, int, int]]] = {}
        self._known: set[tuple[Principal, int, int]] = set()
        self._told_entries: set[Principal] = set()
        """Publishers who were told where to publish; what they send may cross with a removal."""
        self._misled: set[Principal] = set()
        """Publishers to whom an archive handed over other data."""
        self._now = 0

    def _find(self, cheat: str, actor: Principal, round_: int, evidence: str) -> None:
        """One finding per cheat and actor: the first."""
        if (cheat, actor) not in self.said:
            self.said.add((cheat, actor))
            self.findings[Finding(cheat, actor, round_, evidence)] = None


def error_of(result: Result[object] | None) -> str | int | None:
    """The tag of an error, or the code of a generic one; `None` for Ok."""
    match result:
        case ("Err", ("GenericError", error)):
            return error.error_code
        case ("Err", error):
            return error.tag
    return None


def grown(before: Pairs | None, after: Pairs | None, sender: Principal) -> bool:
    """True when headers only grew at the end, in the order of the page, and who sent them was the last that is named.

    Replay marks are the publisher's own (I4, I5).
    """
    old, new = before or (), after or ()
    rest = new[len(old) :]
    places = [ORDER.get(name, -1) for name, _ in rest]
    said = read(rest)
    complete = said.broadcaster is not None and any(name == keys.SENT for name, _ in rest)
    ordered = new[: len(old)] == old and places == sorted(set(places)) and -1 not in places
    return ordered and complete and sender == (said.relay if said.relayed else said.broadcaster)
