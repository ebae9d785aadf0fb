"""The format of vectors of sealed headers and signed messages.

`pubsub vectors check` reads it.
"""

from collections.abc import Iterator
from typing import Final

from pubsub_emulator.primitives.header import Header, turn_of
from pubsub_emulator.primitives.hexadecimal import unhex
from pubsub_emulator.primitives.signatures import Scheme, verify
from pubsub_emulator.primitives.types import AccountId
from pubsub_emulator.primitives.vectors import Case, Document, Format, Mismatch, cases_of, same

_SCHEMES: Final = {"Ed25519": Scheme.ED25519, "Sr25519": Scheme.SR25519, "Ecdsa": Scheme.ECDSA}


def _scheme(case: Document) -> Scheme:
    scheme = _SCHEMES.get(case["scheme"])
    if scheme is None:
        raise Mismatch(f"no signature scheme is called {case['scheme']!r}")
    return scheme


def _check_seal(case: Document) -> None:
    raw = unhex(case["header"])
    header = Header.decode(raw)
    same("the header encoded again", header.encode(), raw)
    slot = header.aura_slot()
    seal = header.aura_seal()
    holds = False
    if slot is not None and seal is not None:
        author = turn_of(slot, [unhex(key) for key in case["authorities"]])
        holds = verify(_scheme(case), seal, header.pre_hash(), AccountId(author))
    same("that the seal holds", holds, case["holds"])


def _check_signature(case: Document) -> None:
    account = AccountId(unhex(case["account"]))
    holds = verify(_scheme(case), unhex(case["signature"]), unhex(case["message"]), account)
    same("that the signature holds", holds, case["holds"])


def _cases(document: Document) -> Iterator[Case]:
    yield from cases_of(document["seals"], _check_seal)
    yield from cases_of(document["signatures"], _check_signature)


FORMATS = (
    Format("seals and signatures", lambda document: {"seals", "signatures"} <= {*document}, _cases),
)
