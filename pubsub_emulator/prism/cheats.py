"""Cheats of a PRISM server with the operations that it owes the owner of a DID, as named objects (EV-41).

Each changes the events of one stream; `spark_audit.spark.deliveries` finds it in their rows, which `operations.row_of`
makes. Cheats about the status of one operation are in `status_cheats`.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from pubsub_emulator.events.cheats import Cheat
from pubsub_emulator.prism.core.errors import Reason
from pubsub_emulator.prism.core.filters import TYPES, FilterType
from pubsub_emulator.prism.core.identifiers import sha256
from pubsub_emulator.prism.core.messages import AtalaOperation, RevokeCredentials, SignedAtalaOperation, decode, encode
from pubsub_emulator.prism.core.process import OperationType, Status
from pubsub_emulator.prism.tables.operations import Event

Events: TypeAlias = Sequence[Event]
_STATES: Final = {OperationType.CREATE_DID, OperationType.UPDATE_DID, OperationType.DEACTIVATE_DID}
_REVOCATIONS: Final = TYPES[FilterType.CREDENTIALS_REVOCATION_FILTER]


def _states(due: Events) -> list[Event]:
    """The operations that changed the DID."""
    return [each for each in due if each.type in _STATES and each.status is Status.APPLIED]


def _without(due: Events, gone: Callable[[Event], bool]) -> list[Event]:
    return [each for each in due if not gone(each)]


def _instead(due: Events, old: Event, new: Event) -> list[Event]:
    return [new if each is old else each for each in due]


def _first(due: Events, status: Status) -> Event:
    return next(each for each in due if each.status is status)


def _hide_deactivation(due: Events, _others: Events) -> list[Event]:
    return _without(due, lambda each: each.type is OperationType.DEACTIVATE_DID)


def _hide_channel(due: Events, _others: Events) -> list[Event]:
    return _without(due, lambda each: each.type in _REVOCATIONS)


def _keep_old_state(due: Events, _others: Events) -> list[Event]:
    later = _states(due)[1:]
    return _without(due, lambda each: each in later)


def _hide_rejection(due: Events, _others: Events) -> list[Event]:
    return _without(due, lambda each: each.status is Status.REJECTED)


def _apply_rejected(due: Events, _others: Events) -> list[Event]:
    rejected = _first(due, Status.REJECTED)
    return _instead(due, rejected, rejected._replace(status=Status.APPLIED, reason=None))


def _reject_applied(due: Events, _others: Events) -> list[Event]:
    applied = _first(due, Status.APPLIED)
    return _instead(due, applied, applied._replace(status=Status.REJECTED, reason=Reason.INVALID_SIGNATURE))


def _excuse(due: Events, _others: Events) -> list[Event]:
    rejected = _first(due, Status.REJECTED)
    reason = next(each for each in Reason if each is not rejected.reason)
    return _instead(due, rejected, rejected._replace(reason=reason))


def _borrow_status(due: Events, others: Events) -> list[Event]:
    update = next(each for each in due if any(each.status is not other.status for other in others))
    lent = next(other for other in others if other.status is not update.status)
    return _instead(due, update, update._replace(status=lent.status, reason=lent.reason))


def _rehash(due: Events, _others: Events) -> list[Event]:
    content = due[0].content + b"\x00"
    return [due[0], due[0]._replace(operation_id=sha256(content), content=content), *due[1:]]


def _swap_content(due: Events, _others: Events) -> list[Event]:
    old, new = _states(due)[:2]
    return _instead(due, new, new._replace(content=old.content))


def _spare(due: Events, _others: Events) -> list[Event]:
    """A revocation of a batch that is told as one of a single credential."""
    for update in due:
        signed = decode(SignedAtalaOperation, update.content)
        member = None if signed.operation is None else signed.operation.operation
        if isinstance(member, RevokeCredentials) and not member.credentials_to_revoke:
            one = AtalaOperation(operation=member._replace(credentials_to_revoke=(sha256(update.content),)))
            return _instead(due, update, update._replace(content=encode(signed._replace(operation=one))))
    raise ValueError("no operation due revokes a whole batch")


def _attribute(due: Events, others: Events) -> list[Event]:
    stranger = next(each.did_suffix for each in others if each.did_suffix != due[0].did_suffix)
    return _instead(due, due[0], due[0]._replace(did_suffix=stranger))


def _move(due: Events, _others: Events) -> list[Event]:
    last = due[-1]
    return _instead(due, last, last._replace(place=last.place._replace(number=last.place.number + 1)))


def _reorder(due: Events, _others: Events) -> list[Event]:
    earlier, later = _states(due)[:2]
    return [later if each is earlier else earlier if each is later else each for each in due]


def _repeat(due: Events, _others: Events) -> list[Event]:
    again = _states(due)[1]
    return [copy for each in due for copy in ((each, each) if each is again else (each,))]


def _push(due: Events, others: Events) -> list[Event]:
    return sorted([*due, *others[:1]], key=lambda each: each.seq_no)


CHEATS: Final[dict[str, Cheat[Event]]] = {
    cheat.name: cheat
    for cheat in (
        Cheat("hide-deactivation", "never tells that the DID was deactivated", "missing", _hide_deactivation),
        Cheat("hide-channel", "leaves out what one channel has, revocations", "missing", _hide_channel),
        Cheat("keep-old-state", "leaves out each change of the DID after the first", "missing", _keep_old_state),
        Cheat("hide-rejection", "leaves out what was rejected", "missing", _hide_rejection),
        Cheat("apply-rejected", "says that a rejected operation was applied", "altered", _apply_rejected),
        Cheat("reject-applied", "says that an applied operation was rejected", "altered", _reject_applied),
        Cheat("excuse", "gives another reason for a rejection", "altered", _excuse),
        Cheat("borrow-status", "tells the status of another's operation", "altered", _borrow_status),
        Cheat("swap-content", "tells an older operation's content in place of a newer one's", "altered", _swap_content),
        Cheat("spare", "says that a revoked batch lost only one credential", "altered", _spare),
        Cheat("attribute", "says that an operation is another DID's", "altered", _attribute),
        Cheat("move", "says that an operation is in another block", "altered", _move),
        Cheat("rehash", "tells an operation again, with another hash", "invented", _rehash),
        Cheat("reorder", "swaps two changes of one DID", "out of order", _reorder),
        Cheat("repeat", "tells a change of the DID twice", "doubled", _repeat),
        Cheat("push", "tells an operation of another DID", "not asked for", _push),
    )
}
"""`change` gets the events of one DID's owner, and events of others. Among those due are two changes of the DID, its
deactivation, a rejected operation, and a revocation of a whole batch; among the others are both statuses."""
