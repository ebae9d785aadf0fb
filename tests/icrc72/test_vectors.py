"""Every vector of the Internet Computer, ICRC-72 and ICRC-77, as `pubsub vectors check` reads them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pubsub_emulator.icrc72.services import interface
from pubsub_emulator.icrc72.vectors import FORMATS
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.vectors import Case

VECTORS = Path(__file__).parents[1] / "vectors" / "icrc"
FILES = sorted(each.stem for each in VECTORS.glob("*.json"))
STATED = ("valid", "matches", "delivered", "hash", "want", "json", "value", "nat", "bytes", "filter")
"""The fields that say what is due, the first that a file has."""


def document(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))
    return found


def cases(found: dict[str, Any]) -> Iterator[Case]:
    (form,) = [each for each in FORMATS if each.fits(found)]
    return form.cases(found)


@pytest.mark.parametrize("name", FILES)
def test_ic_2_ic_3_ic_11_ic_21_ic_24_ic_25_ic_26_ic_27_every_vector_holds(name: str) -> None:
    failed: list[str] = []
    for case, check in cases(document(name)):
        try:
            check()
        except PubsubError as error:
            failed.append(f"{case}: {error}")
    assert failed == []


@pytest.mark.parametrize("name", FILES)
def test_a_vector_that_states_something_else_does_not_hold(name: str) -> None:
    found = document(name)
    first, rows = found["vectors"][0], found["vectors"]
    field = next(each for each in STATED if each in first)
    others = [row[field] for row in rows if row.get(field) not in [None, first[field]]]
    first[field] = {"bad_filters": "a", "candid_messages": ["x"]}.get(name, others[0] if others else None)
    _, check = next(cases(found))
    with pytest.raises(PubsubError):
        check()


def test_ic_11_a_message_has_one_record_class_per_named_record() -> None:
    for service in ("orchestrator", "broadcaster", "publisher", "subscriber", "ledger", "list"):
        for name, type_ in interface(service).types.items():
            make = getattr(type_, "make", None)
            if make is None:
                continue
            fields = tuple(each.name for each in type_.fields)  # type: ignore[union-attr]
            expected = tuple(
                "from" if name == "TransferFromArgs" and f == "source" else f for f in make.args[0]._fields
            )
            assert fields == expected, name
