"""Metadata V14, V15 and V16 of a runtime, made from the definitions of its pallets.

Read `outer` (the types that depend on the runtime as a whole), `registry` (how types are numbered), then `versions`.
"""

from pubsub_emulator.runtime.metadata.outer import type_names as type_names
from pubsub_emulator.runtime.metadata.registry import Registry as Registry
from pubsub_emulator.runtime.metadata.versions import VERSIONS as VERSIONS
from pubsub_emulator.runtime.metadata.versions import metadata as metadata
