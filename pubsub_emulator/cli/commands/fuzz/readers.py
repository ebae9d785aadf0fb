"""The readers of data that a stranger may have made, as listed in `readers.toml`.

`docs/untrusted.md` is made from it.
"""

import tomllib
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Limit:
    """The maximum of something.

    `constant` is `module:NAME`. `unit` says what the limit counts: bytes if it is empty or begins
    with `of`.
    """

    constant: str
    unit: str = ""

    def value(self) -> int:
        """The number; of a class's field, its default."""
        module, _, names = self.constant.partition(":")
        found: Any = import_module(f"pubsub_emulator.{module}")
        for name in names.split("."):
            found = getattr(found() if isinstance(found, type) else found, name)
        return int(found)

    def shown(self) -> str:
        """The limit in words."""
        value = self.value()
        if self.unit and not self.unit.startswith("of "):
            return f"{value:,} {self.unit}"
        for size, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
            if value % size == 0:
                return f"{value // size:,} {name} {self.unit}".rstrip()
        return f"{value:,} bytes {self.unit}".rstrip()


@dataclass(frozen=True, slots=True)
class Row:
    """One reader, by file and name.

    `more` is what bounds it beside the numbers; not every one has a `target`.
    """

    what: str
    reader: str
    limits: tuple[Limit, ...]
    more: str
    bad: str
    target: str


def _rows() -> tuple[Row, ...]:
    table = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    rows = []
    for what, row in table.items():
        limits = tuple(_limit(row["reader"], text) for text in row.get("limits", ()))
        bad = row.get("bad", "one line with file and field; exit code 2")
        rows.append(
            Row(what, row["reader"], limits, row.get("more", ""), bad, row.get("target", ""))
        )
    return tuple(rows)


def _limit(reader: str, text: str) -> Limit:
    name, _, unit = text.partition(" ")
    own = reader.partition(".py::")[0].replace("/", ".")
    return Limit(name if ":" in name else f"{own}:{name}", unit)


ROWS: Final = _rows()
