"""Additions of other distributions: commands, pallets, readers to fuzz, vectors, acts of the tour.

A distribution declares one `Extension` and names it as an entry point:

    [project.entry-points."pubsub_emulator.extensions"]
    my-distribution = "my_package.extension:EXTENSION"

Modules are named, not imported: each is imported when it is used.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Final, TypeVar

from pubsub_emulator.primitives.errors import PubsubError

GROUP: Final = "pubsub_emulator.extensions"
"""The group of the entry points."""

ELSEWHERE: Final = dict.fromkeys(
    ("distributor", "events", "icrc72", "log", "prism"), "interchain-events"
)
"""The distribution of each command that is not part of this one but belongs to this project."""

_Kind = TypeVar("_Kind")


class BadExtension(PubsubError):
    """An entry point that does not name an `Extension`."""


@dataclass(frozen=True, slots=True)
class Extension:
    """The additions of one distribution. Names of modules are complete."""

    distribution: str
    """The name that it is installed by."""
    package: str
    """The package with the file `readers.toml`, which lists its readers of untrusted input."""
    commands: Mapping[str, str] = field(default_factory=dict)
    """The first sentence of each command's help, by the command's name."""
    command_package: str = ""
    """`pubsub some-name` is `command` in the module `some_name` of this package."""
    extras: Mapping[str, str] = field(default_factory=dict)
    """The extra of this distribution that brings a package, by the package's import name."""
    extra_names: tuple[str, ...] = ()
    """The names of all extras of this distribution."""
    relay_pallets: str = ""
    """The module whose `PALLETS` are the kinds of pallets that a relay chain can have."""
    serve_options: str = ""
    """The module whose `OPTIONS` add pallets to the relay chain of `pubsub serve`."""
    fuzz_targets: tuple[str, ...] = ()
    """The modules that declare targets of `pubsub fuzz --target`."""
    vectors: tuple[str, ...] = ()
    """The modules whose `FORMATS` are formats of test vectors."""
    acts: str = ""
    """The module whose `acts` returns acts of `pubsub tour`."""


@cache
def extensions() -> tuple[Extension, ...]:
    """Return the extensions of all installed distributions, in the order of their names.

    Raises `BadExtension`.
    """
    from importlib.metadata import entry_points  # noqa: PLC0415  # slow, and few commands need it

    found = []
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        extension = point.load()
        if not isinstance(extension, Extension):
            raise BadExtension(f"{point.value} of the group {GROUP} is not an Extension")
        found.append(extension)
    return tuple(found)


def attribute(module: str, name: str, kind: type[_Kind]) -> _Kind:
    """Return an attribute of a module that an extension names. Raises `BadExtension`."""
    value = getattr(import_module(module), name, None)
    if not isinstance(value, kind):
        raise BadExtension(f"{module}.{name} is not of type {kind.__name__}")
    return value
