"""One block of a chain, as runtime calls look at it, and what its runtime tells of itself."""

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
from pubsub_emulator.xcm.description import type_names

METADATA_VERSIONS: Final = runtime_metadata.VERSIONS


class UnknownMetadataVersion(PubsubError):
    """A version in which there is no metadata here."""


class WithoutAccounts(PubsubError):
    """A chain without the profile `accounts` has nothing to tell clients of."""


@dataclass(frozen=True, slots=True)
class At:
    """A chain at a block, whose state is never written; parachains have no `relay`; `genesis` is block 0's hash."""

    relay: RelayRuntime | None
    header: Header
    state: State
    genesis: Hash

    @property
    def runtime(self) -> ChainRuntime:
        """The runtime that the next block runs with. Raises `WithoutAccounts`, `ScaleError`, `ImpossibleConfig`."""
        if self.relay is None:
            spec = runtime_spec(self.state.top)
            if not spec.accounts:
                raise WithoutAccounts(f"parachain {spec.para_id} has no accounts")
            return parachain_accounts(spec)
        if self.relay.accounts is None:
            raise WithoutAccounts("the relay chain has no accounts")
        return self.relay.accounts


def runtime_version(at: At) -> RuntimeVersion:
    """The version of the runtime that the next block runs with."""
    return at.runtime.definition.version


def metadata(at: At, version: int) -> bytes:
    """The metadata of a chain at a block, prefix included. Raises `UnknownMetadataVersion`."""
    if version not in METADATA_VERSIONS:
        raise UnknownMetadataVersion(f"there is no metadata of version {version}")
    return runtime_metadata.metadata(version, at.runtime.definition, type_names)
