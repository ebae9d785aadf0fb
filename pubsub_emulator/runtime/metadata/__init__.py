"""Metadata V14 to V16.

Read `outer` (types of the whole runtime), `registry` (the numbering of types) and `versions`.
"""

from pubsub_emulator.runtime.metadata.outer import type_names as type_names
from pubsub_emulator.runtime.metadata.registry import Registry as Registry
from pubsub_emulator.runtime.metadata.versions import VERSIONS as VERSIONS
from pubsub_emulator.runtime.metadata.versions import metadata as metadata
