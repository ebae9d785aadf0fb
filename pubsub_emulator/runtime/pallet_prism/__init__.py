"""Pallet `Prism`: anchors objects of PRISM in the events of blocks (PR-1)."""

from pubsub_emulator.runtime.pallet_prism.pallet import PALLET, Error, ObjectAnchored, Prism

__all__ = ["PALLET", "Error", "ObjectAnchored", "Prism"]
