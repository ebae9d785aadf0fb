"""The table of what a cheat has before it names all there is, and nothing else."""

import re
from dataclasses import fields
from pathlib import Path

from pubsub_emulator.collator.cheats import Situation

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "write-a-cheat.md"
INNER = {"memo", "lists"}
"""What was worked out before; not for strategies."""


def test_the_table_names_what_a_situation_has() -> None:
    table = PAGE.read_text(encoding="utf-8").partition("## What a `Situation` holds")[2]
    named = {name for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)", row)}
    public = {name for name in vars(Situation) if not name.startswith("_")} | {each.name for each in fields(Situation)}
    assert named == public - INNER
