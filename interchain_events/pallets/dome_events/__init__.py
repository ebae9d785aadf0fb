"""Pallet `DomeEvents`: the events of a data space on one chain, each once (ID-50)."""

from interchain_events.pallets.dome_events.pallet import (
    PALLET,
    DomeEvents,
    DomeEventsConfig,
    Error,
    EventDOMEv1,
    Publication,
)

__all__ = ["PALLET", "DomeEvents", "DomeEventsConfig", "Error", "EventDOMEv1", "Publication"]
