"""The root of every expected failure, and the failure that must not be caught.

The families of errors never mix: a call that failed (`runtime.framework.dispatch.DispatchError`), a
block that is not valid (`runtime.parachain.block.InvalidBlock`), a trie that cannot answer
(`trie.TrieError`), and a defect of this program (`DefensiveFailure`).
"""

from typing import ClassVar


class PubsubError(Exception):
    """Root of every failure that a caller is expected to handle."""

    is_infrastructure: ClassVar[bool] = False
    """Whether something outside of the request failed.

    Examples are a disk, a database, or a node that does not answer.
    """


class MissingPackage(PubsubError):
    """An optional package is not installed.

    Commands add to the message how to install it.
    """

    is_infrastructure = True
    name: str = ""
    """The package's import name, as that of `ModuleNotFoundError`."""


class ScaleError(PubsubError):
    """Bytes do not encode the expected SCALE type, or a value does not fit into its type."""


class DefensiveFailure(AssertionError):
    """An invariant of this program is broken.

    This is a defect of the program and never bad input, so it must not be caught.
    """
