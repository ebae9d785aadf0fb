"""A chain's types for clients: metadata, and values by the same descriptions that metadata is made of."""

from pubsub_emulator.node.at import METADATA_VERSIONS, At, UnknownMetadataVersion, metadata, runtime_version
from pubsub_emulator.node.types.bodies import decode_call, decode_events, decode_extrinsic, event_json
from pubsub_emulator.node.types.rows import StorageEntry, entry_of, names_of, parse_row, storage_entry
from pubsub_emulator.node.types.values import BadValue, from_json, to_json
from pubsub_emulator.runtime.framework.definitions import RuntimeVersion

__all__ = [
    "METADATA_VERSIONS",
    "At",
    "BadValue",
    "RuntimeVersion",
    "StorageEntry",
    "UnknownMetadataVersion",
    "decode_call",
    "decode_events",
    "decode_extrinsic",
    "entry_of",
    "event_json",
    "from_json",
    "metadata",
    "names_of",
    "parse_row",
    "runtime_version",
    "storage_entry",
    "to_json",
]
