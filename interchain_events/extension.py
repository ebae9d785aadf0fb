"""The extension of the pub-sub emulator by this distribution, found as an entry point."""

from typing import Final

from pubsub_emulator.extension import Extension

EXTENSION: Final = Extension(
    distribution="interchain-events",
    package="interchain_events",
    commands={
        "log": "Write and read an ordered, gap-free log of a chain's or network's events",
        "events": "Filtered, resumable, gap-free events of a chain for any number of clients",
        "distributor": (
            "Publish each event of a network once on all others (the Interchain Event Distributor)"
        ),
        "prism": "DIDs and credentials on a chain: a PRISM node and its clients",
        "icrc72": (
            "Publish, subscribe and replay between canisters (ICRC-72, ICRC-77) on emulated subnets"
        ),
    },
    command_package="interchain_events.cli.commands",
    extras={
        **dict.fromkeys(("cbor2", "py_arkworks_bls12381", "wasmtime"), "canisters"),
        **dict.fromkeys(("google", "grpc", "psycopg", "psycopg_pool"), "events"),
        **dict.fromkeys(("jwt", "redis"), "distributor"),
        **dict.fromkeys(("eth_abi", "rlp"), "evm"),
    },
    extra_names=("canisters", "distributor", "events", "evm", "icrc72", "prism"),
    relay_pallets="interchain_events.pallets",
    serve_options="interchain_events.cli.serve_options",
    fuzz_targets=(
        "interchain_events.fuzz.canister_targets",
        "interchain_events.fuzz.lying_node",
        "interchain_events.fuzz.module_targets",
        "interchain_events.fuzz.targets",
    ),
    vectors=(
        "interchain_events.pallets.dome_events.vectors",
        "interchain_events.icrc72.vectors",
        "interchain_events.prism.vectors",
    ),
    acts="interchain_events.tour.acts",
)
