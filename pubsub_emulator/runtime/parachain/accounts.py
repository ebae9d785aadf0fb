"""The profile `accounts` of a parachain: its calls, signed extrinsics, and metadata."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from pubsub_emulator.primitives.errors import PubsubError, ScaleError
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.accounts.apply import Signing
from pubsub_emulator.runtime.accounts.publisher import Publisher
from pubsub_emulator.runtime.accounts.sudo import Sudo
from pubsub_emulator.runtime.accounts.system_calls import UpgradableSystem, refused_code
from pubsub_emulator.runtime.accounts.utility import Utility
from pubsub_emulator.runtime.balances import Balances
from pubsub_emulator.runtime.framework.calls import CallTable
from pubsub_emulator.runtime.framework.definitions import RuntimeDefinition, RuntimeVersion
from pubsub_emulator.runtime.framework.dispatch import Other
from pubsub_emulator.runtime.framework.origin import Root
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.metadata.apis import OFFSET_APIS, PARACHAIN_APIS, versions_of
from pubsub_emulator.runtime.pallet_subscriber.calls import SubscriberCalls
from pubsub_emulator.runtime.pallet_subscriber.config import (
    MAX_EXTRINSICS,
    ImpossibleConfig,
    RuntimeSpec,
    decode_spec,
)
from pubsub_emulator.runtime.parachain.governance import superuser_call, upgrade
from pubsub_emulator.runtime.parachain.pallets import PARACHAIN
from pubsub_emulator.trie import TrieError

SPEC_NAME: Final = "pubsub-para"
CRATE: Final = "pubsub_para_runtime"
MAX_WEIGHT: Final = Weight(1_500_000_000_000, MAX_EXTRINSICS)
"""The maximum weight of the signed extrinsics of one block."""
_INHERENT_LENGTH: Final = 10 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ParachainAccounts:
    """The runtime of a parachain with this profile."""

    definition: RuntimeDefinition
    calls: CallTable
    signing: Signing

    def room(self, storage: Storage) -> "ParachainRoom":  # noqa: ARG002  # every block begins with it
        """Return the room of an empty block."""
        return ParachainRoom()


def parachain_accounts(spec: RuntimeSpec) -> ParachainAccounts:
    """Return the calls and the definition of a runtime.

    Runtimes that differ only in their subscriptions and requested keys share one result.
    """
    return _accounts(replace(spec, subscriptions={}, extra_keys=()).encode())


@lru_cache(maxsize=64)
def _accounts(code: bytes) -> ParachainAccounts:
    spec = decode_spec(code)
    balances = Balances()
    utility = Utility()
    root = Sudo()
    apis = OFFSET_APIS if spec.relay_parent_offset else PARACHAIN_APIS
    version = RuntimeVersion(SPEC_NAME, spec.spec_version, versions_of(apis))
    lengths = (MAX_EXTRINSICS, MAX_EXTRINSICS, max(spec.max_pov_size, _INHERENT_LENGTH))
    system = UpgradableSystem(_set_code, version, (MAX_WEIGHT, MAX_WEIGHT), lengths)
    publisher = Publisher(spec.max_value_length)
    pallets = PARACHAIN.objects((system, balances, utility, SubscriberCalls(spec), publisher, root))
    calls = CallTable(pallets)
    # These two pallets have calls that contain other calls.
    utility.calls = calls
    root.calls = calls
    definition = RuntimeDefinition(CRATE, version, pallets, apis, parachain_origins=False)
    return ParachainAccounts(definition, calls, Signing(calls, balances, spec.spec_version))


def _set_code(storage: Storage, code: bytes) -> None:
    """Install a runtime.

    Raises `FailedToExtractRuntimeVersion` or `Other`.
    """
    try:
        spec = decode_spec(code)
    except (ScaleError, ImpossibleConfig):
        raise refused_code() from None
    try:
        upgrade(storage, spec)
    except ImpossibleConfig:
        raise Other from None


def execute_superuser(storage: Storage, calls: CallTable, message: bytes) -> None:
    """Run the root call in a downward message, if the message has one that this chain knows.

    A call that fails, raises an error or does not decode changes nothing, and the block stays
    valid. Raises `TrieError` and errors of the infrastructure, because the effect of the call is
    then unknown.
    """
    encoded = superuser_call(message)
    if encoded is None:
        return
    try:
        call = calls.decode(encoded)
        with storage.transaction():
            calls.dispatch(storage, Root(), call)
    except PubsubError as error:
        if error.is_infrastructure or isinstance(error, TrieError):
            raise


class ParachainRoom:
    """The `Room` for the signed extrinsics of one block.

    It has limits of bytes, which include the proof sizes of weights, and of ref_time.
    """

    def __init__(self) -> None:
        self._weight = Weight(0, 0)
        self._length = 0

    def fits(self, weight: Weight, length: int) -> bool:
        """Return whether an extrinsic of this weight and this many bytes fits."""
        total = self._weight + weight
        return (
            self._length + length + total.proof_size <= MAX_EXTRINSICS
            and total.ref_time <= MAX_WEIGHT.ref_time
        )

    def use(self, storage: Storage, weight: Weight, length: int) -> None:  # noqa: ARG002  # counted here
        """Count the weight and the bytes that an extrinsic used."""
        self._weight += weight
        self._length += length
