"""Pallet `Prism`: anchors objects of PRISM in the events of blocks (PR-1)."""

from interchain_events.pallets.prism.pallet import (
    PALLET,
    Error,
    ObjectAnchored,
    Prism,
    PrismConfig,
)

__all__ = ["PALLET", "Error", "ObjectAnchored", "Prism", "PrismConfig"]
