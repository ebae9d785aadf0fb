"""The JSON Schema of scenarios, for editors: names, types, bounds, defaults and meanings of all fields."""

from typing import Final

from pubsub_emulator.collator.draws import MILLION
from pubsub_emulator.emulator.scenario.model import Scenario
from pubsub_emulator.emulator.settings.fields import add_meanings

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def scenario_schema() -> dict[str, object]:
    """The schema, made from the models. A document that it accepts can still have contradicting fields."""
    add_meanings(Scenario)
    made = Scenario.model_json_schema(mode="validation")
    schema = {"$schema": DIALECT, **made, "title": "Scenario of pubsub-emulator"}
    _as_written(schema)
    return schema


def _as_written(value: object) -> None:
    """Change defaults to their form in files: shares from 0 to 1, and none for whole tables."""
    if isinstance(value, list):
        for each in value:
            _as_written(each)
    if not isinstance(value, dict):
        return
    default = value.get("default")
    if isinstance(default, dict | list) and default:
        del value["default"]
    elif value.get("type") == "number" and isinstance(default, int):
        value["default"] = default / MILLION
    for each in value.values():
        _as_written(each)
