"""Pallets that a relay chain can have for the event systems.

A configuration of each pallet is a value to be passed as one of `RelayConfig.added`.
"""

from typing import Final

from interchain_events.pallets.dome_events import DomeEvents
from interchain_events.pallets.prism import Prism

PALLETS: Final = (DomeEvents, Prism)
