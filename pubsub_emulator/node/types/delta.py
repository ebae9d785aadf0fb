"""The difference between two JSON values in the form of jsondiffpatch.

added     [new]
changed   [old, new]
removed   [old, 0, 0]
objects   {name: delta}
arrays    {"_t": "a", "3": delta of the new item 3, "_3": removal of the old item 3}
"""

from collections.abc import Mapping


def delta(old: object, new: object) -> object:
    """Return the difference from `old` to `new`, or `None` if they are equal."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return _objects(old, new)
    if isinstance(old, list) and isinstance(new, list):
        return _arrays(old, new)
    return None if _same(old, new) else [old, new]


def _same(old: object, new: object) -> bool:
    """Return whether two JSON values are equal. Unlike in Python, `true` is not 1."""
    return bool(old == new) and isinstance(old, bool) == isinstance(new, bool)


def _objects(old: Mapping[str, object], new: Mapping[str, object]) -> dict[str, object] | None:
    """Return the difference between two objects."""
    out: dict[str, object] = {}
    for name, value in old.items():
        found = delta(value, new[name]) if name in new else [value, 0, 0]
        if found is not None:
            out[name] = found
    out.update({name: [value] for name, value in new.items() if name not in old})
    return out or None


def _arrays(old: list[object], new: list[object]) -> dict[str, object] | None:
    """Return the difference between two arrays.

    Equal items at both ends are matched. Between them, arrays and objects at the same index are
    compared with each other, and all other items are removed or added.
    """
    shorter = min(len(old), len(new))
    head = next((at for at in range(shorter) if delta(old[at], new[at]) is not None), shorter)
    tail = next(
        (at for at in range(shorter - head) if delta(old[-1 - at], new[-1 - at]) is not None),
        shorter - head,
    )
    before = old[head : len(old) - tail]
    after = new[head : len(new) - tail]
    out: dict[str, object] = {"_t": "a"}
    for at in range(head, head + max(len(before), len(after))):
        place = at - head
        if place < min(len(before), len(after)) and _nests(before[place], after[place]):
            found = delta(before[place], after[place])
            if found is not None:
                out[str(at)] = found
            continue
        if place < len(before):
            out[f"_{at}"] = [before[place], 0, 0]
        if place < len(after):
            out[str(at)] = [after[place]]
    return out if len(out) > 1 else None


def _nests(old: object, new: object) -> bool:
    both = (old, new)
    return all(isinstance(each, Mapping) for each in both) or all(
        isinstance(each, list) for each in both
    )
