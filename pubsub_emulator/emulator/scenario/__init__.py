"""Scenarios: publishers, subscribers and cheats; read from TOML and run as a simulation."""

from pubsub_emulator.emulator.scenario.model import (
    CollatorSettings,
    Load,
    PublisherGroup,
    RelaySettings,
    Scenario,
    Span,
    Subscriber,
    SubscriptionSettings,
    missing_key,
    published_key,
)

__all__ = [
    "CollatorSettings",
    "Load",
    "PublisherGroup",
    "RelaySettings",
    "Scenario",
    "Span",
    "Subscriber",
    "SubscriptionSettings",
    "missing_key",
    "published_key",
]
