"""The vectors of global ids, for `pubsub vectors check` (ID-20, ID-21)."""

from typing import Final

from interchain_events.pallets.dome_events.global_id import NoGlobalIdError, global_id
from pubsub_emulator.primitives.vectors import Document, Format, cases_of, has, same


def _check(case: Document) -> None:
    """Compare the id or error of a location with the stated one."""
    try:
        result = ("id", global_id(case["data_location"]))
    except NoGlobalIdError as error:
        result = ("error", str(error))
    stated = ("id", case["id"]) if "id" in case else ("error", case["error"])
    same("the id or error", result, stated)


FORMATS: Final = (
    Format(
        "global ids of events",
        has("data_location", of="cases"),
        lambda document: cases_of(document["cases"], _check),
    ),
)
