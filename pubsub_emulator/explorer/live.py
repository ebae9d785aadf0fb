"""The live page of a running node, and the page of its kept blocks."""

from collections.abc import Mapping, Sequence
from typing import Any

from pubsub_emulator.emulator.network.network import Network
from pubsub_emulator.emulator.network.records import AuthorityRecord, CheckpointRecord, RelayRecord
from pubsub_emulator.emulator.scenario.model import Scenario
from pubsub_emulator.explorer.difference import difference_page
from pubsub_emulator.explorer.page import page_html
from pubsub_emulator.explorer.recorder import Recorder
from pubsub_emulator.explorer.svg import asset
from pubsub_emulator.explorer.words import scenario_names
from pubsub_emulator.node.chain.block import RELAY, Moment
from pubsub_emulator.primitives.types import ParaBlockNumber, Slot

DRAWN = 200
"""The number of newest relay blocks on a page."""


class LivePage:
    """Draws pages of one node's network."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario

    def live(self) -> str:
        """The self-contained page that shows blocks, candidates and deliveries live."""
        return asset("live.html")

    @staticmethod
    def difference(title: str, shown: Mapping[str, Any]) -> str:
        """The page of a dry run; `shown` is the result of `dev_dryRun`."""
        return difference_page(title, shown)

    def explore(self, network: Network, moments: Sequence[Moment]) -> str:
        """The page of the newest moments, ascending; the first is the start and is not drawn."""
        kept = moments[-DRAWN - 1 :]
        recorder = Recorder(scenario_names(self._scenario), network.relay)
        start = kept[0]
        for chain, block in start.heads.items():
            if chain is RELAY:
                continue
            keys = tuple(each.key for each in network.parachain(chain).collators)
            recorder.authorities(AuthorityRecord(chain, ParaBlockNumber(block.number + 1), keys))
            recorder.checkpoint(CheckpointRecord(chain, 0, block.header, block.state))
            if network.parachain(chain).known_subscriptions:
                recorder.chains[chain].subscribes = True
        for moment in kept[1:]:
            header = moment.relay.header
            slot = max((record.slot_now for record in moment.records), default=Slot(0))
            recorder.relay_block(RelayRecord(moment.number, moment.relay.hash, header.state_root, slot))
            for record in moment.records:
                recorder.candidate(record)
        return page_html(recorder, self._scenario.name, self._scenario.description)
