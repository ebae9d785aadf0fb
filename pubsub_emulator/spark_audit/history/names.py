"""Names of chains: a file beside a network's segments, for display only.

    <history>/_names/<network>.json    {"chains": {"2000": "oracle"}, "format": 1}

Verdicts, digests and heads do not depend on it. It may come from a stranger, so its size is limited
and names must not contain unprintable characters.
"""

import json
from collections.abc import Mapping
from typing import Final

from pubsub_emulator.spark_audit.history.manifest import canonical_json, check_name, is_chain
from pubsub_emulator.spark_audit.history.reader import Fault
from pubsub_emulator.spark_audit.history.storage import Store

NAMES: Final = "_names"
"""The folder with the files of names."""
MOST_LETTERS: Final = 100
"""The maximum length of a name, in characters."""
MOST_BYTES: Final = 4 * 1_048_576
"""The maximum size of a network's file, enough for about ten thousand of the longest names."""
_FORMAT: Final = 1

Names = dict[int, str]
"""Names of chains by ParaId."""


def names_path(network: str) -> str:
    """Return the path of a network's file of names, relative to the history."""
    return f"{NAMES}/{network}.json"


def showable(name: str) -> str | None:
    """Return a name without unprintable characters and cut to `MOST_LETTERS`.

    Returns `None` if nothing is left.
    """
    printable = "".join(letter if letter.isprintable() else " " for letter in name)
    # Spaces that follow one another become one.
    text = " ".join(printable.split())
    return text[:MOST_LETTERS].rstrip() or None


def write_names(store: Store, network: str, names: Mapping[int, str]) -> None:
    """Add names of chains to a network's file. A chain that has a name already keeps it.

    Raises `CommitError`, `OSError`.
    """
    check_name(network)
    new = {chain: text for chain, name in names.items() if (text := showable(name)) is not None}
    known, _ = read_names(store, network)
    if new.keys() <= known.keys():
        return
    body = {
        "format": _FORMAT,
        "chains": {str(chain): name for chain, name in (new | known).items()},
    }
    store.put(names_path(network), canonical_json(body))


def read_names(store: Store, network: str) -> tuple[Names, Fault | None]:
    """Return the names of a network's chains, and a fault if the file cannot be read.

    A missing file is not a fault, because names are optional.
    """
    path = names_path(network)
    try:
        return _names(json.loads(store.read(path, MOST_BYTES))), None
    except FileNotFoundError:
        return {}, None
    except (ValueError, RecursionError):
        return {}, Fault(
            path, "this is no file of names: the chains are shown without names", network=network
        )
    except OSError as error:
        return {}, Fault(path, str(error.strerror or error), network=network)


def _names(body: object) -> Names:
    """Return the names in a file's content. Raises `ValueError` if it is malformed."""
    if (
        not isinstance(body, dict)
        or body.get("format") != _FORMAT
        or not isinstance(body.get("chains"), dict)
    ):
        raise ValueError
    out: Names = {}
    for chain, name in body["chains"].items():
        if not is_chain(chain) or not isinstance(name, str) or showable(name) != name:
            raise ValueError
        out[int(chain)] = name
    return out
