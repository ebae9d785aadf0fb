"""Exceptions of the ICRC-72 and ICRC-77 code.

Errors that a method returns to its caller are values, not exceptions: see `messages.Error`.
"""

from pubsub_emulator.primitives.errors import PubsubError


class Icrc72Error(PubsubError):
    """Base class of the exceptions of this package."""


class NamespaceError(Icrc72Error):
    """A text is not a namespace or a pattern of namespaces (IC-24)."""


class FilterError(Icrc72Error):
    """A text is not a filter (IC-26)."""


class IdentifierError(Icrc72Error):
    """A text is not an identifier of an event (IC-25)."""


class ConfigError(Icrc72Error):
    """A configuration or an alert is malformed. Methods answer it with ImproperConfig (IC-30b)."""
