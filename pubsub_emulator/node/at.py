"""One block of a chain as runtime calls see it, with its runtime's version and metadata."""

from dataclasses import dataclass
from typing import Final

from pubsub_emulator.emulator.relay.runtime import RelayRuntime
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.runtime import metadata as runtime_metadata
from pubsub_emulator.runtime.accounts.chain import ChainRuntime
from pubsub_emulator.runtime.framework.definitions import RuntimeVersion
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.runtime.pallet_subscriber.config import runtime_spec
from pubsub_emulator.runtime.parachain.accounts import parachain_accounts
from pubsub_emulator.runtime.rules import SHIPPED, Rules
from pubsub_emulator.xcm.description import type_names

METADATA_VERSIONS: Final = runtime_metadata.VERSIONS


class UnknownMetadataVersion(PubsubError):
    """A metadata version that this runtime does not provide."""


class WithoutAccounts(PubsubError):
    """A chain without the profile `accounts`. Its runtime has no API for clients."""


@dataclass(frozen=True, slots=True)
class At:
    """A chain at one block. Its state must not be changed."""

    relay: RelayRuntime | None
    """The relay chain's runtime, or `None` if the chain is a parachain."""
    header: Header
    """The block's header."""
    state: State
    """The state after the block."""
    genesis: Hash
    """The hash of the chain's block 0, which signatures include."""
    rules: Rules = SHIPPED
    """The rules of the network."""

    @property
    def runtime(self) -> ChainRuntime:
        """Return the runtime that executes the next block.

        Raises `WithoutAccounts` if the chain has no accounts. A parachain's runtime is read from
        its state. Raises `ScaleError` or `ImpossibleConfig` if it cannot be decoded or used.
        """
        if self.relay is None:
            spec = runtime_spec(self.state.top)
            if not spec.accounts:
                raise WithoutAccounts(f"parachain {spec.para_id} has no accounts")
            return parachain_accounts(spec)
        if self.relay.accounts is None:
            raise WithoutAccounts("the relay chain has no accounts")
        return self.relay.accounts


def runtime_version(at: At) -> RuntimeVersion:
    """Return the version of the runtime that executes the next block."""
    return at.runtime.definition.version


def metadata(at: At, version: int) -> bytes:
    """Return a chain's metadata at a block as SCALE bytes, including the magic prefix.

    Raises `UnknownMetadataVersion` if `version` is not in `METADATA_VERSIONS`.
    """
    if version not in METADATA_VERSIONS:
        raise UnknownMetadataVersion(f"there is no metadata of version {version}")
    return runtime_metadata.metadata(version, at.runtime.definition, type_names)
