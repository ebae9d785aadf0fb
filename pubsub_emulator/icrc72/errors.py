"""Errors of the publish-subscribe of canisters, apart from those that its methods answer."""

from pubsub_emulator.primitives.errors import PubsubError


class Icrc72Error(PubsubError):
    """Root of the failures of this room."""


class NamespaceError(Icrc72Error):
    """Text is not a namespace or pattern (IC-24)."""


class FilterError(Icrc72Error):
    """Text is not a filter (IC-26)."""


class IdentifierError(Icrc72Error):
    """Text is not an identifier (IC-25)."""


class ConfigError(Icrc72Error):
    """A configuration that a method answers with ImproperConfig (IC-30b)."""
