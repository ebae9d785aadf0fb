"""What clients know of a chain: metadata, and values by the same descriptions that metadata is made of."""

from pubsub_emulator.node.at import METADATA_VERSIONS, At, UnknownMetadataVersion, metadata, runtime_version
from pubsub_emulator.runtime.framework.definitions import RuntimeVersion

__all__ = ["METADATA_VERSIONS", "At", "RuntimeVersion", "UnknownMetadataVersion", "metadata", "runtime_version"]
