"""Every group of methods."""

from collections.abc import Mapping

from pubsub_emulator.node.rpc import (
    archive,
    author,
    chain_head,
    chain_spec,
    dev,
    dev_try,
    legacy_chain,
    legacy_childstate,
    legacy_state,
    pubsub_act,
    pubsub_lab,
    pubsub_read,
    pubsub_session,
    transaction,
)
from pubsub_emulator.node.rpc.method import Method, table


def all_methods(*, unsafe: bool) -> Mapping[str, Method]:
    """The methods of a node, with those for development or without."""
    groups = (
        chain_spec.methods,
        legacy_chain.methods,
        legacy_state.methods,
        legacy_childstate.methods,
        author.methods,
        transaction.methods,
        archive.methods,
        chain_head.methods,
        pubsub_read.methods,
        pubsub_session.methods,
        pubsub_act.methods,
        pubsub_lab.methods,
        dev.methods,
        dev_try.methods,
    )
    return table(groups, unsafe=unsafe)
