"""Pallet `DomeEvents`: the events of a data space on one chain, each once (ID-50)."""

from pubsub_emulator.runtime.pallet_dome_events.pallet import (
    PALLET,
    DomeEvents,
    Error,
    EventDOMEv1,
    Publication,
)

__all__ = ["PALLET", "DomeEvents", "Error", "EventDOMEv1", "Publication"]
