"""The cheats of a PRISM server, as named objects (EV-41).

Each of `CHEATS` changes the operations of one stream. `delivery_audit.deliveries` finds it in the
rows that `operations.row_of` makes of them. Each of `STATUS_CHEATS` changes the statuses of an
operation in one stream. `delivery_audit.statuses` finds it by comparing them with the true ones.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from interchain_events.events.cheats import BroadcasterCheat
from interchain_events.prism.core.errors import Reason
from interchain_events.prism.core.filters import TYPES, FilterType
from interchain_events.prism.core.identifiers import sha256
from interchain_events.prism.core.messages import (
    AtalaOperation,
    RevokeCredentials,
    SignedAtalaOperation,
    decode,
    encode,
)
from interchain_events.prism.core.process import OperationType, Status
from interchain_events.prism.core.status import OperationStatus, StatusUpdate
from interchain_events.prism.tables.operations import Event

Events: TypeAlias = Sequence[Event]
_DEACTIVATE: Final = OperationType.DEACTIVATE_DID
_STATES: Final = {OperationType.CREATE_DID, OperationType.UPDATE_DID, _DEACTIVATE}
_REVOCATIONS: Final = TYPES[FilterType.CREDENTIALS_REVOCATION_FILTER]


def _states(due: Events) -> list[Event]:
    """Return the operations that changed the DID."""
    return [event for event in due if event.type in _STATES and event.status is Status.APPLIED]


def _hiding(*types: OperationType) -> Callable[[Events, Events], list[Event]]:
    """Return the change that leaves out operations of these types."""
    return lambda due, _: [event for event in due if event.type not in types]


def _instead(due: Events, old: Event, **columns: Any) -> list[Event]:
    """Return the operations, with the given columns of `old` replaced."""
    return [old._replace(**columns) if event is old else event for event in due]


def _first(due: Events, status: Status) -> Event:
    """Return the first operation with a status."""
    return next(event for event in due if event.status is status)


def _keep_old_state(due: Events, _others: Events) -> list[Event]:
    later = _states(due)[1:]
    return [event for event in due if event not in later]


def _hide_rejection(due: Events, _others: Events) -> list[Event]:
    return [event for event in due if event.status is not Status.REJECTED]


def _apply_rejected(due: Events, _others: Events) -> list[Event]:
    return _instead(due, _first(due, Status.REJECTED), status=Status.APPLIED, reason=None)


def _reject_applied(due: Events, _others: Events) -> list[Event]:
    return _instead(
        due, _first(due, Status.APPLIED), status=Status.REJECTED, reason=Reason.INVALID_SIGNATURE
    )


def _excuse(due: Events, _others: Events) -> list[Event]:
    rejected = _first(due, Status.REJECTED)
    reason = next(reason for reason in Reason if reason is not rejected.reason)
    return _instead(due, rejected, reason=reason)


def _borrow_status(due: Events, others: Events) -> list[Event]:
    changed = next(
        event for event in due if any(event.status is not other.status for other in others)
    )
    lender = next(other for other in others if other.status is not changed.status)
    return _instead(due, changed, status=lender.status, reason=lender.reason)


def _rehash(due: Events, _others: Events) -> list[Event]:
    content = due[0].content + b"\x00"
    return [due[0], due[0]._replace(operation_id=sha256(content), content=content), *due[1:]]


def _swap_content(due: Events, _others: Events) -> list[Event]:
    old, new = _states(due)[:2]
    return _instead(due, new, content=old.content)


def _spare(due: Events, _others: Events) -> list[Event]:
    """Return the operations, with a revocation of a whole batch changed to one credential."""
    for update in due:
        signed = decode(SignedAtalaOperation, update.content)
        member = None if signed.operation is None else signed.operation.operation
        if isinstance(member, RevokeCredentials) and not member.credentials_to_revoke:
            one = AtalaOperation(
                operation=member._replace(credentials_to_revoke=(sha256(update.content),))
            )
            return _instead(due, update, content=encode(signed._replace(operation=one)))
    raise ValueError("no operation due revokes a whole batch")


def _attribute(due: Events, others: Events) -> list[Event]:
    stranger = next(other.did_suffix for other in others if other.did_suffix != due[0].did_suffix)
    return _instead(due, due[0], did_suffix=stranger)


def _move(due: Events, _others: Events) -> list[Event]:
    place = due[-1].place
    return _instead(due, due[-1], place=place._replace(number=place.number + 1))


def _reorder(due: Events, _others: Events) -> list[Event]:
    earlier, later = _states(due)[:2]

    def exchanged(event: Event) -> Event:
        if event is earlier:
            return later
        return earlier if event is later else event

    return [exchanged(event) for event in due]


def _repeat(due: Events, _others: Events) -> list[Event]:
    twice = _states(due)[1]
    events: list[Event] = []
    for event in due:
        events.append(event)
        if event is twice:
            events.append(event)
    return events


def _push(due: Events, others: Events) -> list[Event]:
    return sorted([*due, *others[:1]], key=lambda event: event.seq_no)


CHEATS: Final[dict[str, BroadcasterCheat[Event]]] = {
    cheat.name: cheat
    for cheat in (
        BroadcasterCheat(
            "hide-deactivation",
            "never tells that the DID was deactivated",
            "missing",
            _hiding(_DEACTIVATE),
        ),
        BroadcasterCheat(
            "hide-channel",
            "leaves out what one channel has, revocations",
            "missing",
            _hiding(*_REVOCATIONS),
        ),
        BroadcasterCheat(
            "keep-old-state",
            "leaves out each change of the DID after the first",
            "missing",
            _keep_old_state,
        ),
        BroadcasterCheat(
            "hide-rejection", "leaves out rejected operations", "missing", _hide_rejection
        ),
        BroadcasterCheat(
            "apply-rejected",
            "says that a rejected operation was applied",
            "altered",
            _apply_rejected,
        ),
        BroadcasterCheat(
            "reject-applied",
            "says that an applied operation was rejected",
            "altered",
            _reject_applied,
        ),
        BroadcasterCheat("excuse", "gives another reason for a rejection", "altered", _excuse),
        BroadcasterCheat(
            "borrow-status", "tells the status of another's operation", "altered", _borrow_status
        ),
        BroadcasterCheat(
            "swap-content",
            "tells an older operation's content in place of a newer one's",
            "altered",
            _swap_content,
        ),
        BroadcasterCheat(
            "spare", "says that a revoked batch lost only one credential", "altered", _spare
        ),
        BroadcasterCheat(
            "attribute", "says that an operation is another DID's", "altered", _attribute
        ),
        BroadcasterCheat("move", "says that an operation is in another block", "altered", _move),
        BroadcasterCheat(
            "rehash", "tells an operation again, with another hash", "invented", _rehash
        ),
        BroadcasterCheat("reorder", "swaps two changes of one DID", "out of order", _reorder),
        BroadcasterCheat("repeat", "tells a change of the DID twice", "doubled", _repeat),
        BroadcasterCheat("push", "tells an operation of another DID", "not asked for", _push),
    )
}
"""The cheats with operations, by name.

The arguments of `change` are the operations for the owner of one DID, and operations of others. The
former include two changes of the DID, its deactivation, a rejected operation, and a revocation of a
whole batch. The latter include both statuses.
"""


class ToldStatus(NamedTuple):
    """A status in a stream. At that time, the true status was the one with the number `turn`."""

    turn: int
    update: StatusUpdate


Answers: TypeAlias = Sequence[ToldStatus]
"""The statuses of one operation in one stream."""


def _place_of(due: Answers, status: OperationStatus) -> int:
    """Return the place of the first answer with a status."""
    return next(place for place, answer in enumerate(due) if answer.update.status is status)


def _replaced(due: Answers, place: int, update: StatusUpdate) -> list[ToldStatus]:
    """Return the answers, with the status at one place replaced."""
    return [*due[:place], due[place]._replace(update=update), *due[place + 1 :]]


def _foretell(due: Answers, _others: Answers) -> list[ToldStatus]:
    place = _place_of(due, OperationStatus.CONFIRMATION_LEVEL)
    return _replaced(due, place, due[-1].update)


def _deny(due: Answers, _others: Answers) -> list[ToldStatus]:
    place = _place_of(due, OperationStatus.IN_BLOCK)
    return _replaced(due, place, StatusUpdate(OperationStatus.CANCELLED))


def _inflate(due: Answers, _others: Answers) -> list[ToldStatus]:
    place = _place_of(due, OperationStatus.CONFIRMATION_LEVEL)
    update = due[place].update
    return _replaced(due, place, update._replace(level=update.level + 100))


def _misplace(due: Answers, _others: Answers) -> list[ToldStatus]:
    update = due[-1].update
    if update.place is None:
        raise ValueError("the last status has no place")
    next_block = update.place._replace(number=update.place.number + 1)
    return _replaced(due, len(due) - 1, update._replace(place=next_block))


def _borrow(due: Answers, others: Answers) -> list[ToldStatus]:
    borrowed = next(answer.update for answer in others if answer.update.place is not None)
    return _replaced(due, _place_of(due, OperationStatus.PENDING), borrowed)


def _repeat_answer(due: Answers, _others: Answers) -> list[ToldStatus]:
    place = _place_of(due, OperationStatus.CONFIRMATION_LEVEL)
    return [*due[: place + 1], due[place], *due[place + 1 :]]


def _hark_back(due: Answers, _others: Answers) -> list[ToldStatus]:
    place = _place_of(due, OperationStatus.CONFIRMATION_LEVEL)
    earlier = ToldStatus(due[place].turn, due[place - 1].update)
    return [*due[: place + 1], earlier, *due[place + 1 :]]


_OF_STATUS: Final[tuple[BroadcasterCheat[ToldStatus], ...]] = (
    BroadcasterCheat(
        "foretell", "says that an operation is approved before it is", "invented", _foretell
    ),
    BroadcasterCheat("deny", "says that an operation in a block was cancelled", "invented", _deny),
    BroadcasterCheat(
        "inflate", "says that more blocks confirm an operation than do", "altered", _inflate
    ),
    BroadcasterCheat(
        "misplace", "says that an operation is in another block", "altered", _misplace
    ),
    BroadcasterCheat("borrow-answer", "tells the status of another operation", "altered", _borrow),
    BroadcasterCheat("repeat-answer", "tells a status twice in a row", "doubled", _repeat_answer),
    BroadcasterCheat(
        "hark-back",
        "tells an earlier status again, though no block was taken back",
        "out of order",
        _hark_back,
    ),
    BroadcasterCheat(
        "hide-end",
        "never tells that an operation was approved",
        "withheld",
        lambda due, _: list(due[:-1]),
    ),
    BroadcasterCheat("keep-silent", "sends no status", "withheld", lambda _due, _others: []),
)
STATUS_CHEATS: Final = {cheat.name: cheat for cheat in _OF_STATUS}
"""The cheats with statuses, by name.

The arguments of `change` are the statuses of one operation and those of another one. The former are
PENDING and IN_BLOCK, both again after a reorganisation, several levels of CONFIRMATION_LEVEL, and
APPROVED.
"""
