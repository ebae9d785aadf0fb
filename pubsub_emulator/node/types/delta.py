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
    changes: dict[str, object] = {}
    for name, value in old.items():
        change = delta(value, new[name]) if name in new else [value, 0, 0]
        if change is not None:
            changes[name] = change
    changes.update({name: [value] for name, value in new.items() if name not in old})
    return changes or None


def _arrays(old: list[object], new: list[object]) -> dict[str, object] | None:
    """Return the difference between two arrays.

    Equal items at both ends are matched. Between them, arrays and objects at the same index are
    compared with each other, and all other items are removed or added.
    """
    shorter = min(len(old), len(new))
    head = 0
    while head < shorter and delta(old[head], new[head]) is None:
        head += 1
    tail = 0
    while tail < shorter - head and delta(old[-1 - tail], new[-1 - tail]) is None:
        tail += 1
    old_middle = old[head : len(old) - tail]
    new_middle = new[head : len(new) - tail]
    changes: dict[str, object] = {"_t": "a"}
    for offset in range(max(len(old_middle), len(new_middle))):
        index = head + offset
        in_both = offset < min(len(old_middle), len(new_middle))
        if in_both and _nests(old_middle[offset], new_middle[offset]):
            change = delta(old_middle[offset], new_middle[offset])
            if change is not None:
                changes[str(index)] = change
            continue
        if offset < len(old_middle):
            changes[f"_{index}"] = [old_middle[offset], 0, 0]
        if offset < len(new_middle):
            changes[str(index)] = [new_middle[offset]]
    return changes if len(changes) > 1 else None


def _nests(old: object, new: object) -> bool:
    """Return whether both values are objects, or both are arrays."""
    if isinstance(old, Mapping):
        return isinstance(new, Mapping)
    return isinstance(old, list) and isinstance(new, list)
