"""A candidate whose further functions are methods that its author names."""

from collections.abc import Callable
from typing import Final, cast

from interchain_events.icrc72.conformance.trial import Candidate
from interchain_events.icrc72.errors import Icrc72Error
from interchain_events.icrc72.ic.candid.did import parse_types
from interchain_events.icrc72.ic.canister import Answer, Canister
from interchain_events.icrc72.ic.errors import CandidError
from interchain_events.icrc72.ic.network import CanisterNetwork
from interchain_events.icrc72.ic.principal import ANONYMOUS, Principal
from interchain_events.icrc72.ic.wasm.canister import NOTHING
from interchain_events.icrc72.services import Codec

_IDS: Final = Codec(parse_types("(vec nat)"))
_NUMBER: Final = Codec(parse_types("(nat)"))
_ROUNDS: Final = 60
"""Rounds in which a canister registers."""


def candidate_of(
    place: str,
    make: Callable[[Principal], Canister],
    publish: str | None = None,
    handled: str | None = None,
    register: str | None = None,
) -> Candidate:
    """Return a candidate with its methods for actions for which the standard has no method.

    `publish` is an update of a nat that makes an event, `handled` a query that returns the ids of
    handled events, and `register` an update without arguments. Errors call the candidate `place`.
    A trial raises `Icrc72Error` if such a method fails.
    """

    def call_publish(network: CanisterNetwork, canister: Principal, number: int) -> None:
        network.submit(ANONYMOUS, canister, publish or "", _NUMBER.encode(number))

    def call_handled(network: CanisterNetwork, canister: Principal) -> list[int]:
        method = handled or ""
        return ids_of(place, method, network.query(ANONYMOUS, canister, method, NOTHING))

    def call_register(network: CanisterNetwork, canister: Principal) -> None:
        ticket = network.submit(ANONYMOUS, canister, register or "", NOTHING)
        network.step(_ROUNDS)
        if ticket.answer is not None and not ticket.answer.ok:
            raise Icrc72Error(f"{place}: the update {register} fails: {ticket.answer.message}")

    return Candidate(
        make,
        publish=call_publish if publish else None,
        handled=call_handled if handled else None,
        register=call_register if register else None,
    )


def ids_of(place: str, method: str, answer: Answer) -> list[int]:
    """Return the ids in the answer of a query.

    Raises `Icrc72Error` if the query failed, or its answer is not a list of ids.
    """
    if not answer.ok:
        raise Icrc72Error(f"{place}: the query {method} fails: {answer.message}")
    try:
        return list(cast("tuple[int, ...]", _IDS.decode(answer.data)[0]))
    except CandidError as error:
        raise Icrc72Error(f"{place}: {method} does not answer `vec nat`: {error}") from error
