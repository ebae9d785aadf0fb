"""The pub-sub emulator: what most programs need, from one import.

    from pubsub_emulator import Network, key_from_data

The rooms are subpackages (`pubsub_emulator.trie`, `pubsub_emulator.runtime.pallet_pubsub`, …). A name of this page is
imported from its room when it is first used, so a program pays only for the rooms it needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pubsub_emulator.primitives.version import VERSION

if TYPE_CHECKING:
    from pubsub_emulator.collator.cheats import STRATEGIES, Situation, attempt, register_strategy
    from pubsub_emulator.collator.cheats.steps import Add, Drop
    from pubsub_emulator.collator.cheats.strategy import Proposal, strategy
    from pubsub_emulator.collator.draws import Draws
    from pubsub_emulator.emulator.network import Network, NetworkConfig, ParachainConfig
    from pubsub_emulator.emulator.network.parachain import Pace
    from pubsub_emulator.emulator.network.relay_runtime import RelayConfig
    from pubsub_emulator.emulator.observers.metrics import Metrics
    from pubsub_emulator.emulator.scenario import CollatorSettings, Scenario
    from pubsub_emulator.emulator.scenario.file import load_scenario, parse_scenario
    from pubsub_emulator.emulator.scenario.simulation import Simulation
    from pubsub_emulator.primitives.errors import PubsubError
    from pubsub_emulator.primitives.header import Header
    from pubsub_emulator.primitives.pubsub import (
        Infinite,
        TimedOut,
        TtlState,
        ValidFor,
        derive_child_key,
        key_from_data,
    )
    from pubsub_emulator.primitives.types import AccountId, ParaId, PubsubKey
    from pubsub_emulator.primitives.weights import Weight
    from pubsub_emulator.runtime.framework.storage import Storage
    from pubsub_emulator.runtime.pallet_subscriber.config import RuntimeSpec
    from pubsub_emulator.runtime.pallet_subscriber.handler import HandlerContext, HandlerError, register_handler
    from pubsub_emulator.runtime.parachain.block import InvalidBlock, Verdict
    from pubsub_emulator.runtime.parachain.validate import validate_block

__version__ = VERSION

_HOMES = {
    "collator.cheats": ("STRATEGIES", "Situation", "attempt", "register_strategy"),
    "collator.cheats.steps": ("Add", "Drop"),
    "collator.cheats.strategy": ("Proposal", "strategy"),
    "collator.draws": ("Draws",),
    "emulator.observers.metrics": ("Metrics",),
    "emulator.network": ("Network", "NetworkConfig", "ParachainConfig"),
    "emulator.network.parachain": ("Pace",),
    "emulator.network.relay_runtime": ("RelayConfig",),
    "emulator.scenario": ("CollatorSettings", "Scenario"),
    "emulator.scenario.file": ("load_scenario", "parse_scenario"),
    "emulator.scenario.simulation": ("Simulation",),
    "primitives.errors": ("PubsubError",),
    "primitives.header": ("Header",),
    "primitives.pubsub": ("Infinite", "TimedOut", "TtlState", "ValidFor", "derive_child_key", "key_from_data"),
    "primitives.types": ("AccountId", "ParaId", "PubsubKey"),
    "primitives.weights": ("Weight",),
    "runtime.pallet_subscriber.config": ("RuntimeSpec",),
    "runtime.pallet_subscriber.handler": ("HandlerContext", "HandlerError", "register_handler"),
    "runtime.parachain.block": ("InvalidBlock", "Verdict"),
    "runtime.parachain.validate": ("validate_block",),
    "runtime.framework.storage": ("Storage",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "STRATEGIES",
    "AccountId",
    "Add",
    "CollatorSettings",
    "Draws",
    "Drop",
    "HandlerContext",
    "HandlerError",
    "Header",
    "Infinite",
    "InvalidBlock",
    "Metrics",
    "Network",
    "NetworkConfig",
    "Pace",
    "ParaId",
    "ParachainConfig",
    "Proposal",
    "PubsubError",
    "PubsubKey",
    "RelayConfig",
    "RuntimeSpec",
    "Scenario",
    "Simulation",
    "Situation",
    "Storage",
    "TimedOut",
    "TtlState",
    "ValidFor",
    "Verdict",
    "Weight",
    "__version__",
    "attempt",
    "derive_child_key",
    "key_from_data",
    "load_scenario",
    "parse_scenario",
    "register_handler",
    "register_strategy",
    "strategy",
    "validate_block",
]


def __getattr__(name: str) -> Any:
    """Import `name` from its room. Raises `AttributeError` for a name that is not of this page."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'pubsub_emulator' has no attribute {name!r}")
    value = getattr(import_module(f"pubsub_emulator.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Every name of this page, imported or not."""
    return sorted({*globals(), *__all__})
