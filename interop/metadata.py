"""Writes the metadata of both chains, versions 14 to 16, as SCALE files for the Rust programs.

python interop/metadata.py FOLDER
"""

import sys
from pathlib import Path

from pubsub_emulator.emulator.network import Network, NetworkConfig, ParachainConfig
from pubsub_emulator.emulator.relay.runtime import RelayConfig
from pubsub_emulator.node.at import METADATA_VERSIONS, At, metadata
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.pallet_subscriber.config import RuntimeSpec

PARA = ParaId(2000)


def main(folder: Path) -> None:
    """Write `relay-vN.scale` and `para-vN.scale` into `folder`, which is created."""
    spec = RuntimeSpec(PARA, {}, accounts=True)
    network = Network(
        NetworkConfig(relay=RelayConfig(accounts=True), parachains=(ParachainConfig(spec),))
    )
    relay, para = network.relay, network.parachain(PARA)
    chains = {
        "relay": At(relay.runtime, relay.header, relay.state, relay.header.hash()),
        "para": At(None, para.header, para.state, para.header.hash()),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, at in chains.items():
        for version in METADATA_VERSIONS:
            (folder / f"{name}-v{version}.scale").write_bytes(metadata(at, version))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
