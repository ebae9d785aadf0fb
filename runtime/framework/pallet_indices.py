"""Where pallets stand in the runtimes here: one table of indices, since events, errors and calls are encoded with them.

Indices are those of the Polkadot relay chain and of parachain templates where a pallet exists there. Relay chain and
parachain share the table without a clash, so that one decoder reads the events of both.
"""

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
