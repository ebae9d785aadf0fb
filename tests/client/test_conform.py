"""`pubsub conform`: our own node keeps every rule, and a node that breaks one is caught by the rule's name."""

import asyncio
from collections.abc import Collection

from support.node import serving

from pubsub_emulator.client.conform import Finding, Mapping, conform
from pubsub_emulator.client.conform.driver import Driver
from pubsub_emulator.emulator.scenario.file import load_bundled
from pubsub_emulator.emulator.scenario.model import RelaySettings
from pubsub_emulator.node.server.options import Build

SMALL = RelaySettings(
    session_length=10, max_stored_keys=20, max_total_storage_size=1700, max_value_length=128, max_publishers=3
)
"""Limits that few calls reach."""
LEAVING = Mapping(offboard_blocks=30)


def held(mapping: Mapping = LEAVING, only: Collection[str] = (), relay: RelaySettings = SMALL) -> dict[str, Finding]:
    """The findings about our own node, by rule."""

    def run(url: str) -> list[Finding]:
        with Driver(url, mapping, {}) as driver:
            return conform(driver, only)

    async def serve() -> list[Finding]:
        scenario = load_bundled("node").model_copy(update={"relay": relay})
        async with serving(scenario, build=Build.INSTANT) as node, asyncio.timeout(120):
            return await asyncio.to_thread(run, node.urls[None])

    return {each.rule: each for each in asyncio.run(serve())}


def test_our_own_node_keeps_every_rule() -> None:
    findings = held()
    assert {name: each for name, each in findings.items() if each.verdict != "holds"} == {}
    assert len(findings) == 25
