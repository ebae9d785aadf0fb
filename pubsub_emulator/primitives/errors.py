"""The root of every expected failure, and the failure that nobody may catch.

Its families never mix: a call that failed (`runtime.framework.dispatch.DispatchError`), a block that is not valid
(`runtime.parachain.block.InvalidBlock`), and a trie that cannot answer (`trie.TrieError`). Neither do they mix with a
defect of this program (`DefensiveFailure`).
"""

from typing import ClassVar


class PubsubError(Exception):
    """Root of every failure that a caller is expected to handle."""

    is_infrastructure: ClassVar[bool] = False
    """Whether something outside of the request failed: a disk, a database, a node that does not answer."""


class MissingPackage(PubsubError):
    """An optional package is not installed. A command adds how to install it."""

    is_infrastructure = True
    name: str = ""
    """The package's import name, as that of `ModuleNotFoundError`."""


class ScaleError(PubsubError):
    """The bytes are not a SCALE encoding of the expected type, or a value does not fit into its type."""


class DefensiveFailure(AssertionError):
    """An invariant of this program is broken. This is a defect here and never bad input, so nobody catches it."""
