"""Names of chains: a file beside a network's segments, on which no verdict rests.

    <history>/_names/<network>.json    {"chains": {"2000": "oracle"}, "format": 1}

Neither head nor digest covers it. It comes from strangers: it is bounded, hides no letters, and is only ever shown.
"""

import json
from collections.abc import Mapping
from typing import Final

from pubsub_emulator.spark_audit.history.manifest import canonical_json, check_name, is_chain
from pubsub_emulator.spark_audit.history.reader import Fault
from pubsub_emulator.spark_audit.history.storage import Store

NAMES: Final = "_names"
MOST_LETTERS: Final = 100
MOST_BYTES: Final = 4 * 1_048_576
"""Of the file of a network; some ten thousand of the longest names."""
_FORMAT: Final = 1

Names = dict[int, str]


def names_path(network: str) -> str:
    """The path of the names of a network's chains, below a history."""
    return f"{NAMES}/{network}.json"


def showable(name: str) -> str | None:
    """A name without what cannot be printed, and not too long; `None` where nothing is left of it."""
    text = " ".join("".join(letter if letter.isprintable() else " " for letter in name).split())
    return text[:MOST_LETTERS].rstrip() or None


def write_names(store: Store, network: str, names: Mapping[int, str]) -> None:
    """Add names of chains to those that a network has, which stay. Raises `CommitError`, `OSError`."""
    check_name(network)
    fit = {chain: text for chain, name in names.items() if (text := showable(name)) is not None}
    there, _ = read_names(store, network)
    if fit.keys() <= there.keys():
        return
    body = {"format": _FORMAT, "chains": {str(chain): name for chain, name in (fit | there).items()}}
    store.put(names_path(network), canonical_json(body))


def read_names(store: Store, network: str) -> tuple[Names, Fault | None]:
    """The names of a network's chains; none where there is no file, and none beside a fault where it is damaged."""
    path = names_path(network)
    try:
        return _names(json.loads(store.read(path, MOST_BYTES))), None
    except FileNotFoundError:
        return {}, None
    except (ValueError, RecursionError):
        return {}, Fault(path, "this is no file of names: the chains are shown without names", network=network)
    except OSError as error:
        return {}, Fault(path, str(error.strerror or error), network=network)


def _names(body: object) -> Names:
    """Raises `ValueError`."""
    if not isinstance(body, dict) or body.get("format") != _FORMAT or not isinstance(body.get("chains"), dict):
        raise ValueError
    out: Names = {}
    for chain, name in body["chains"].items():
        if not is_chain(chain) or not isinstance(name, str) or showable(name) != name:
            raise ValueError
        out[int(chain)] = name
    return out
