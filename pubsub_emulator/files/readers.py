"""The readers of untrusted data, as the file `readers.toml` of each package lists them.

`docs/untrusted.md` is made from these files.
"""

import tomllib
from dataclasses import dataclass
from importlib import import_module
from importlib.resources import files
from typing import Any

from pubsub_emulator.extension import extensions


@dataclass(frozen=True, slots=True)
class ReaderLimit:
    """The maximum of something.

    `constant` is `module:NAME`, with the full name of the module. `unit` is what the limit counts.
    If it is empty or begins with `of`, the limit counts bytes.
    """

    constant: str
    unit: str = ""

    @property
    def counts_bytes(self) -> bool:
        """Return whether the limit is a number of bytes."""
        return not self.unit or self.unit.startswith("of ")

    def value(self) -> int:
        """Return the number. For a field of a class, it is the default."""
        module, _, names = self.constant.partition(":")
        value: Any = import_module(module)
        for name in names.split("."):
            value = getattr(value() if isinstance(value, type) else value, name)
        return int(value)

    def shown(self) -> str:
        """Return the limit as text, such as `64 MiB`."""
        value = self.value()
        if not self.counts_bytes:
            return f"{value:,} {self.unit}"
        for size, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
            if value % size == 0:
                return f"{value // size:,} {name} {self.unit}".rstrip()
        return f"{value:,} bytes {self.unit}".rstrip()


@dataclass(frozen=True, slots=True)
class ReaderRow:
    """One reader, by file and name."""

    what: str
    reader: str
    limits: tuple[ReaderLimit, ...]
    within: tuple[str, ...]
    """The rows of inputs of which this one is a part. Their limits in bytes apply to it, too."""
    more: str
    """Other bounds, as text."""
    bad: str
    """What happens with bad input, as text."""
    target: str
    """The name of its target of `pubsub fuzz`, empty if there is none."""

    def shown_limits(self) -> str:
        """Return all limits as text."""
        shown = [limit.shown() for limit in self.limits]
        if self.within:
            shown.append(f"the bytes of {' or '.join(self.within)}")
        if self.more:
            shown.append(self.more)
        return "; ".join(shown)


def rows_of(package: str) -> tuple[ReaderRow, ...]:
    """Return the readers that the file `readers.toml` of a package lists."""
    text = (files(package) / "readers.toml").read_text(encoding="utf-8")
    rows = []
    for what, row in tomllib.loads(text).items():
        limits = tuple(_limit(package, row["reader"], limit) for limit in row.get("limits", ()))
        rows.append(
            ReaderRow(
                what=what,
                reader=f"{package}/{row['reader']}",
                limits=limits,
                within=tuple(row.get("within", ())),
                more=row.get("more", ""),
                bad=row.get("bad", "one line with file and field; exit code 2"),
                target=row.get("target", ""),
            )
        )
    return tuple(rows)


def all_rows() -> tuple[ReaderRow, ...]:
    """Return the readers of this distribution and of all extensions. Raises `BadExtension`."""
    rows = list(rows_of("pubsub_emulator"))
    for extension in extensions():
        rows += rows_of(extension.package)
    return tuple(rows)


def _limit(package: str, reader: str, text: str) -> ReaderLimit:
    """Read a limit, `NAME unit` or `module:NAME unit`.

    Without a module, the constant is in the module of the reader.
    """
    constant, _, unit = text.partition(" ")
    module, colon, name = constant.rpartition(":")
    if not colon:
        module = reader.partition(".py::")[0].replace("/", ".")
    if not module.startswith(("pubsub_emulator.", "interchain_events.")):
        module = f"{package}.{module}"
    return ReaderLimit(f"{module}:{name}", unit)
