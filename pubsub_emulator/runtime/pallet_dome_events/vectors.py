"""The vectors of global ids, for `pubsub vectors check` (ID-20, ID-21)."""

from collections.abc import Iterator
from typing import Final

from pubsub_emulator.primitives.vectors import Case, Document, Format, same
from pubsub_emulator.runtime.pallet_dome_events.global_id import NoGlobalIdError, global_id


def _fits(document: Document) -> bool:
    cases = document.get("cases")
    return isinstance(cases, list) and bool(cases) and isinstance(cases[0], dict) and "data_location" in cases[0]


def _check(case: Document) -> None:
    try:
        found = ("id", global_id(case["data_location"]))
    except NoGlobalIdError as error:
        found = ("error", str(error))
    stated = next((name, case[name]) for name in ("id", "error") if name in case)
    same("what is found", found, stated)


def _cases(document: Document) -> Iterator[Case]:
    for at, case in enumerate(document["cases"]):
        name = str(case.get("name", at)) if isinstance(case, dict) else str(at)
        yield name, lambda case=case: _check(case)  # type: ignore[misc]  # bound where it is made


FORMATS: Final = (Format("global ids of events", _fits, _cases),)
