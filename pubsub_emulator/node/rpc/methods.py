"""All methods of a node, by name. Importing the modules declares their methods."""

from collections.abc import Mapping

from pubsub_emulator.node.rpc import (  # noqa: F401  # each declares methods
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
    pubsub_branches,
    pubsub_lab,
    pubsub_read,
    pubsub_session,
    transaction,
)
from pubsub_emulator.node.rpc.method import DECLARED, Method
from pubsub_emulator.primitives.errors import DefensiveFailure


def all_methods(*, unsafe: bool) -> Mapping[str, Method]:
    """Return the methods by each of their names.

    With `unsafe`, methods for development are included. Raises `DefensiveFailure` if a name is
    declared twice.
    """
    by_name: dict[str, Method] = {}
    for method in DECLARED:
        if method.unsafe and not unsafe:
            continue
        for name in (method.name, *method.aliases):
            if name in by_name:
                raise DefensiveFailure(f"two methods are called {name}")
            by_name[name] = method
    return by_name
