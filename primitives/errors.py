"""The one root of every expected failure, and the failure that nobody may catch.

Four families never mix: a call that failed (`runtime.dispatch.DispatchError`), a block that is not valid
(`runtime.parachain_system.InvalidBlock`), a trie that cannot answer (`trie.TrieError`), and a defect of this program
(`DefensiveFailure`).
"""

from typing import ClassVar


class PubsubError(Exception):
    """Root of every failure that a caller is expected to handle."""

    of_the_machine: ClassVar[bool] = False
    """Whether something outside of the request failed: a disk, a database, a node that does not answer."""


class ScaleError(PubsubError):
    """Bytes that are not the SCALE encoding of the type that was asked for."""


class DefensiveFailure(AssertionError):
    """A state this program promised could not occur. It is a defect here, never bad input: let it fly."""
