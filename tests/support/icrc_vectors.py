"""The vectors of tests/vectors/icrc."""

import json
from pathlib import Path
from typing import Any

VECTORS = Path(__file__).parents[1] / "vectors" / "icrc"


def vectors(name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((VECTORS / f"{name}.json").read_text())["vectors"]
    return rows


def raw(written: str) -> bytes:
    return bytes.fromhex(written.removeprefix("0x"))
