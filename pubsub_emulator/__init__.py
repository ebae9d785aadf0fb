"""The pub-sub emulator: what most programs need, from one import.

    from pubsub_emulator import Network, key_from_data

The rooms are subpackages (`pubsub_emulator.trie`, `pubsub_emulator.runtime.pallet_pubsub`, …). A name of this page is
imported from its room when it is first used, so a program pays only for the rooms it needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pubsub_emulator.primitives.version import VERSION

if TYPE_CHECKING:
    from pubsub_emulator.client.fork import open_fork
    from pubsub_emulator.collator.cheats import STRATEGIES, Situation, attempt, register_strategy
    from pubsub_emulator.collator.cheats.steps import Add, Drop
    from pubsub_emulator.collator.cheats.strategy import Proposal, strategy
    from pubsub_emulator.collator.draws import Draws
    from pubsub_emulator.emulator.network import Network, NetworkConfig, ParachainConfig
    from pubsub_emulator.emulator.network.parachain import Pace
    from pubsub_emulator.emulator.observers.metrics import Metrics
    from pubsub_emulator.emulator.relay.runtime import RelayConfig
    from pubsub_emulator.emulator.scenario import CollatorSettings, Scenario
    from pubsub_emulator.emulator.scenario.file import load_bundled, load_scenario, parse_scenario
    from pubsub_emulator.emulator.scenario.simulation import Simulation
    from pubsub_emulator.explorer.page import page_html
    from pubsub_emulator.explorer.recorder import Recorder
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
    from pubsub_emulator.primitives.scale import Codec, Reader
    from pubsub_emulator.primitives.storage_keys import child_root_key
    from pubsub_emulator.primitives.types import AccountId, ParaId, PubsubKey
    from pubsub_emulator.primitives.weights import Weight
    from pubsub_emulator.runtime.framework.items import StorageDoubleMap, Twox64Concat
    from pubsub_emulator.runtime.framework.storage import Storage
    from pubsub_emulator.runtime.pallet_subscriber.config import RuntimeSpec
    from pubsub_emulator.runtime.pallet_subscriber.handler import HandlerContext, HandlerError, register_handler
    from pubsub_emulator.runtime.parachain.block import InvalidBlock, Verdict
    from pubsub_emulator.runtime.parachain.validate import validate_block
    from pubsub_emulator.spark_audit.audit.run import audit
    from pubsub_emulator.spark_audit.history.store import HistoryWriter
    from pubsub_emulator.testing.actors import Cheats
    from pubsub_emulator.testing.networks import Frozen, Networks
    from pubsub_emulator.testing.proof_sizes import ProofSizes
    from pubsub_emulator.testing.snapshot import ProofSnapshot
    from pubsub_emulator.trie import BadNode, MissingNode, Trie, read_child_proof, read_proof, state_root

__version__ = VERSION

_HOMES = {
    "client.fork": ("open_fork",),
    "collator.cheats": ("STRATEGIES", "Situation", "attempt", "register_strategy"),
    "collator.cheats.steps": ("Add", "Drop"),
    "collator.cheats.strategy": ("Proposal", "strategy"),
    "collator.draws": ("Draws",),
    "emulator.network": ("Network", "NetworkConfig", "ParachainConfig"),
    "emulator.network.parachain": ("Pace",),
    "emulator.relay.runtime": ("RelayConfig",),
    "emulator.observers.metrics": ("Metrics",),
    "emulator.scenario": ("CollatorSettings", "Scenario"),
    "emulator.scenario.file": ("load_bundled", "load_scenario", "parse_scenario"),
    "emulator.scenario.simulation": ("Simulation",),
    "explorer.page": ("page_html",),
    "explorer.recorder": ("Recorder",),
    "primitives.errors": ("PubsubError",),
    "primitives.header": ("Header",),
    "primitives.pubsub": ("Infinite", "TimedOut", "TtlState", "ValidFor", "derive_child_key", "key_from_data"),
    "primitives.scale": ("Codec", "Reader"),
    "primitives.storage_keys": ("child_root_key",),
    "primitives.types": ("AccountId", "ParaId", "PubsubKey"),
    "primitives.weights": ("Weight",),
    "runtime.framework.items": ("StorageDoubleMap", "Twox64Concat"),
    "runtime.framework.storage": ("Storage",),
    "runtime.pallet_subscriber.config": ("RuntimeSpec",),
    "runtime.pallet_subscriber.handler": ("HandlerContext", "HandlerError", "register_handler"),
    "runtime.parachain.block": ("InvalidBlock", "Verdict"),
    "runtime.parachain.validate": ("validate_block",),
    "spark_audit.audit.run": ("audit",),
    "spark_audit.history.store": ("HistoryWriter",),
    "testing.actors": ("Cheats",),
    "testing.networks": ("Frozen", "Networks"),
    "testing.proof_sizes": ("ProofSizes",),
    "testing.snapshot": ("ProofSnapshot",),
    "trie": ("BadNode", "MissingNode", "Trie", "read_child_proof", "read_proof", "state_root"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "STRATEGIES",
    "AccountId",
    "Add",
    "BadNode",
    "Cheats",
    "Codec",
    "CollatorSettings",
    "Draws",
    "Drop",
    "Frozen",
    "HandlerContext",
    "HandlerError",
    "Header",
    "HistoryWriter",
    "Infinite",
    "InvalidBlock",
    "Metrics",
    "MissingNode",
    "Network",
    "NetworkConfig",
    "Networks",
    "Pace",
    "ParaId",
    "ParachainConfig",
    "ProofSizes",
    "ProofSnapshot",
    "Proposal",
    "PubsubError",
    "PubsubKey",
    "Reader",
    "Recorder",
    "RelayConfig",
    "RuntimeSpec",
    "Scenario",
    "Simulation",
    "Situation",
    "Storage",
    "StorageDoubleMap",
    "TimedOut",
    "Trie",
    "TtlState",
    "Twox64Concat",
    "ValidFor",
    "Verdict",
    "Weight",
    "__version__",
    "attempt",
    "audit",
    "child_root_key",
    "derive_child_key",
    "key_from_data",
    "load_bundled",
    "load_scenario",
    "open_fork",
    "page_html",
    "parse_scenario",
    "read_child_proof",
    "read_proof",
    "register_handler",
    "register_strategy",
    "state_root",
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
