"""The indices of pallets in the runtimes here. Events, errors and calls are encoded with them.

Pallets that exist on the Polkadot relay chain or in parachain templates have the index that they have there. Relay
chain and parachains share the table without a clash, so that one decoder reads the events of both.
"""

from functools import cache
from importlib import import_module
from typing import Final

PALLET_INDEX: Final[dict[str, int]] = {
    "System": 0,
    "ParachainSystem": 1,
    "Babe": 2,
    "Timestamp": 3,
    "Balances": 5,
    "Session": 9,
    "Aura": 23,
    "Utility": 26,
    "TransactionPayment": 32,
    "Configuration": 51,
    "ParaInclusion": 53,
    "Paras": 56,
    "Dmp": 58,
    "Hrmp": 60,
    "Registrar": 70,
    "XcmPallet": 99,
    "MessageQueue": 100,
    "Broadcaster": 101,
    "Subscriber": 102,
    "Publisher": 103,
    "Consumer": 104,
    "ParachainInfo": 105,
    "DomeEvents": 106,
    "Prism": 107,
    "Sudo": 255,
}
"""u8 index by pallet name."""

PALLET_NAME: Final[dict[int, str]] = {index: name for name, index in PALLET_INDEX.items()}

DECLARED_IN: Final[dict[str, tuple[str, ...]]] = {
    "System": ("runtime.framework.system", "runtime.accounts.system_calls"),
    "Balances": ("runtime.balances.events", "runtime.balances.types"),
    "Session": ("runtime.relay.session",),
    "Utility": ("runtime.accounts.utility",),
    "TransactionPayment": ("runtime.accounts.transaction_payment",),
    "Configuration": ("runtime.relay.configuration",),
    "ParaInclusion": ("runtime.relay.inclusion",),
    "Paras": ("runtime.relay.paras",),
    "Dmp": ("runtime.relay.dmp",),
    "Hrmp": ("runtime.relay.hrmp",),
    "Registrar": ("runtime.relay.registrar",),
    "XcmPallet": ("emulator.relay.message_outcomes", "emulator.relay.xcm_pallet"),
    "MessageQueue": ("runtime.relay.message_queue.types",),
    "Broadcaster": ("runtime.pallet_pubsub.events", "runtime.pallet_pubsub.errors"),
    "Subscriber": ("runtime.pallet_subscriber.events", "runtime.pallet_subscriber.errors"),
    "Publisher": ("runtime.accounts.publisher",),
    "DomeEvents": ("runtime.pallet_dome_events.pallet",),
    "Prism": ("runtime.pallet_prism.pallet",),
    "Sudo": ("runtime.accounts.sudo",),
}
"""The modules that declare a pallet's events and errors."""


@cache
def declare(pallet: str) -> None:
    """Import the modules of a pallet's events and errors, so that decoding does not depend on earlier imports."""
    for module in DECLARED_IN.get(pallet, ()):
        import_module(f"pubsub_emulator.{module}")
