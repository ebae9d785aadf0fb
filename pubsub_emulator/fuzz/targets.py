"""All targets of `pubsub fuzz --target`: each room's module of targets declares its own."""

from importlib import import_module
from typing import Final

from pubsub_emulator.extension import extensions
from pubsub_emulator.laboratory.mutation import DECLARED, Target

_MODULES: Final = (
    "pubsub_emulator.laboratory.targets",
    "pubsub_emulator.node.fuzz_targets",
    "pubsub_emulator.node.lying_node",
    "pubsub_emulator.explorer.lying_node",
    "pubsub_emulator.fuzz.fetch_targets",
    "pubsub_emulator.fuzz.lying_node",
    "pubsub_emulator.session.lying_node",
    "pubsub_emulator.session.fuzz_target",
    "pubsub_emulator.spark_audit.fuzz_targets",
)


def all_targets() -> tuple[Target, ...]:
    """Return the targets of this distribution and of all extensions. Raises `BadExtension`."""
    for module in _MODULES:
        import_module(module)
    for extension in extensions():
        for module in extension.fuzz_targets:
            import_module(module)
    return tuple(DECLARED)


ALL: Final = all_targets()
