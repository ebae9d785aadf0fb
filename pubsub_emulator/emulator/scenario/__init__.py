"""Scenarios: publishers, subscribers and cheats; read from TOML and run as a simulation."""

from pubsub_emulator.emulator.scenario.model import (
    CollatorSettings,
    Load,
    Model,
    PublisherGroup,
    RelaySettings,
    Scenario,
    Span,
    Subscriber,
    Subscription,
    missing_key,
    published_key,
)

__all__ = [
    "CollatorSettings",
    "Load",
    "Model",
    "PublisherGroup",
    "RelaySettings",
    "Scenario",
    "Span",
    "Subscriber",
    "Subscription",
    "missing_key",
    "published_key",
]
