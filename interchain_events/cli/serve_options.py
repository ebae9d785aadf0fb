"""Options of `pubsub serve` that add this distribution's pallets to the relay chain."""

from typing import Final

from interchain_events.pallets.dome_events import DomeEventsConfig
from interchain_events.pallets.prism import PrismConfig
from pubsub_emulator.cli.base.options import PalletOption

OPTIONS: Final = (
    PalletOption(
        "--dome-events",
        help="Give the relay chain pallet DomeEvents of network NAME.",
        metavar="NAME",
        make=DomeEventsConfig,
    ),
    PalletOption(
        "--prism",
        help="Give the relay chain pallet Prism, which anchors PRISM objects.",
        make=lambda _given: PrismConfig(),
    ),
)
