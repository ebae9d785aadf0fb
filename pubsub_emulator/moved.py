"""The old import paths of modules that have moved. They work in this release and go with the next.

Importing an old path returns the module from its new place and raises a `DeprecationWarning`.
"""

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

MOVED: Final = {
    "pubsub_emulator.cli.base.errors": "pubsub_emulator.files.errors",
    "pubsub_emulator.cli.base.output": "pubsub_emulator.files.output",
    "pubsub_emulator.cli.base.program": "pubsub_emulator.files.program",
    "pubsub_emulator.cli.inspect": "pubsub_emulator.inspection",
    "pubsub_emulator.cli.screen.blocks": "pubsub_emulator.session.blocks",
    "pubsub_emulator.cli.session": "pubsub_emulator.session",
    "pubsub_emulator.collator.draws": "pubsub_emulator.primitives.draws",
    "pubsub_emulator.database": "interchain_events.database",
    "pubsub_emulator.distributor": "interchain_events.distributor",
    "pubsub_emulator.emulator.extras": "pubsub_emulator.files.extras",
    "pubsub_emulator.emulator.files": "pubsub_emulator.files.atomic",
    "pubsub_emulator.emulator.settings": "pubsub_emulator.files.settings",
    "pubsub_emulator.emulator.untrusted": "pubsub_emulator.files.untrusted",
    "pubsub_emulator.events": "interchain_events.events",
    "pubsub_emulator.icrc72": "interchain_events.icrc72",
    "pubsub_emulator.primitives.face": "pubsub_emulator.lazy",
    "pubsub_emulator.primitives.near": "pubsub_emulator.files.near",
    "pubsub_emulator.primitives.shown": "pubsub_emulator.files.shown",
    "pubsub_emulator.primitives.version": "pubsub_emulator.version",
    "pubsub_emulator.prism": "interchain_events.prism",
    "pubsub_emulator.runtime.pallet_dome_events": "interchain_events.pallets.dome_events",
    "pubsub_emulator.runtime.pallet_prism": "interchain_events.pallets.prism",
    "pubsub_emulator.spark_audit.deliveries": "interchain_events.delivery_audit",
    "pubsub_emulator.spark_audit.spark.deliveries": "interchain_events.delivery_audit.deliveries",
    "pubsub_emulator.spark_audit.spark.statuses": "interchain_events.delivery_audit.statuses",
    "pubsub_emulator.testing.canisters": "interchain_events.testing.canisters",
}
"""The new path of each moved module or package by its old path. Modules within a package moved with
it.
"""

DISTRIBUTIONS: Final = {"interchain_events": "interchain-events"}
"""The name that a distribution is installed by, by its package, of those that modules moved to."""


def new_path(name: str) -> str | None:
    """Return the new path of a module, or `None` if it has not moved."""
    parts = name.split(".")
    for length in range(len(parts), 1, -1):
        moved = MOVED.get(".".join(parts[:length]))
        if moved is not None:
            return ".".join((moved, *parts[length:]))
    return None


class MovedModules(MetaPathFinder, Loader):
    """Finds modules by their old paths."""

    def __init__(self) -> None:
        self._specs: dict[str, ModuleSpec | None] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec for an old path."""
        del path, target
        return None if new_path(fullname) is None else ModuleSpec(fullname, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Import the module from its new place and warn.

        Raises `ModuleNotFoundError` if it moved to a distribution that is not installed.
        """
        place = new_path(spec.name)
        assert place is not None  # noqa: S101  # `find_spec` has checked it
        warnings.warn(
            f"{spec.name} is now {place}; the old path works in this release only",
            DeprecationWarning,
            stacklevel=2,  # the frames of importlib do not count
        )
        module = _import_from(place, spec.name)
        self._specs[spec.name] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Give the module its own spec again; it was executed when it was imported by its new path.

        The import system has just replaced the spec by the one of the old path.
        """
        spec = module.__spec__
        assert spec is not None  # noqa: S101  # as said
        module.__spec__ = self._specs.pop(spec.name)


def _import_from(place: str, old: str) -> ModuleType:
    """Import a module from its new place. Raises `ModuleNotFoundError`."""
    try:
        return import_module(place)
    except ModuleNotFoundError as error:
        if error.name not in DISTRIBUTIONS:
            raise
        raise ModuleNotFoundError(
            f"{old} is now {place}, and the distribution {DISTRIBUTIONS[error.name]}, which has it,"
            f" is not installed: `pip install {DISTRIBUTIONS[error.name]}`",
            name=error.name,
        ) from None


def renamed(module: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """Return `__getattr__` of a module whose names went to several other modules.

    `homes` are the modules of the names. Each use of an old place warns.
    """

    def find(name: str) -> object:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        message = f"{module}.{name} is now {home}.{name}; the old place works in this release only"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        found: object = getattr(import_module(home), name)
        return found

    return find


def install() -> None:
    """Let old paths be imported. A second call does nothing."""
    if not any(isinstance(finder, MovedModules) for finder in sys.meta_path):
        # First of all: other finders find a module of a moved package below its old path, too,
        # and make a second module of the same file.
        sys.meta_path.insert(0, MovedModules())
