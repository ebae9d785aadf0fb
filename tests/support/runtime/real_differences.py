"""The differences between the metadata of runtimes here and of real ones.

tests/vectors/metadata/differences.toml has the known differences with their reasons. `python
tests/support/runtime/real_differences.py` writes the present ones there, with the known reasons.
"""

import sys
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from support.node.nodes import at
from support.runtime.accounts import SUBSCRIBER, network
from support.runtime.real_shapes import Runtime, real

from pubsub_emulator.node.at import metadata

KEPT: Final = Path(__file__).parents[2] / "vectors" / "metadata" / "differences.toml"
CHAINS: Final = {"relay": (None, "polkadot-15"), "parachain": (SUBSCRIBER, "asset-hub-polkadot-15")}
SIGNS: Final = ("missing", "extra", "other")
Differences = dict[str, dict[str, dict[str, list[str]]]]
"""By place, such as `relay.Babe`, and kind: the names that are missing here, that are here only,
and whose bytes have another shape here.
"""


@cache
def runtimes(chain: str) -> tuple[Runtime, Runtime]:
    """Return the runtime of a chain here, and the real one with which it is compared."""
    para, name = CHAINS[chain]
    return Runtime(metadata(at(network(), para), 15)), real(name)


def found() -> Differences:
    """Return all differences, sorted."""
    out: Differences = {}
    for chain in CHAINS:
        ours, theirs = runtimes(chain)
        out[f"{chain}.pallets"] = {"pallets": _named(set(ours.pallets), set(theirs.pallets))}
        out[f"{chain}.apis"] = {"apis": _named(set(ours.apis), set(theirs.apis))}
        mine, other = ours.items(), theirs.items()
        for place in sorted(mine.keys() & other.keys()):
            name, kind = place.split(".")
            pallet, kind = (kind, "functions") if name == "apis" else (name, kind)
            signs = compared(mine[place], other[place])
            if any(signs.values()):
                out.setdefault(f"{chain}.{pallet}", {})[kind] = signs
    return out


def _named(ours: set[str], theirs: set[str]) -> dict[str, list[str]]:
    return {"missing": sorted(theirs - ours), "extra": sorted(ours - theirs), "other": []}


def compared(ours: Mapping[str, str], theirs: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the differences between items of both runtimes, given as shapes by name."""
    signs = _named(set(ours), set(theirs))
    signs["other"] = sorted(each for each in ours.keys() & theirs if ours[each] != theirs[each])
    return signs


def kept() -> dict[str, dict[str, Any]]:
    """Return the stored differences by place, each with a `reason`."""
    return tomllib.loads(KEPT.read_text(encoding="utf-8"))


def of_kinds(entry: Mapping[str, Any]) -> dict[str, dict[str, list[str]]]:
    """Return the stored differences of a place in the form of `found`."""
    return {
        kind: {sign: signs.get(sign, []) for sign in SIGNS}
        for kind, signs in entry.items()
        if kind != "reason"
    }


def write() -> None:
    """Write the found differences, with the reasons that are known."""
    reasons = {place: entry.get("reason", "") for place, entry in kept().items()}
    lines = ["# Written by tests/support/runtime/real_differences.py, except for the reasons."]
    for place, kinds in found().items():
        lines += ["", f'["{place}"]', f'reason = "{reasons.get(place, "")}"']
        for kind, signs in kinds.items():
            for sign, names in signs.items():
                if names:
                    lines.append(f"{kind}.{sign} = [")
                    lines += [f'    "{name}",' for name in names]
                    lines.append("]")
    KEPT.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
