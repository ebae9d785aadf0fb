"""Tagged fields: the scalars in an event's JSON as texts that begin with their type.

Spark can compare these texts exactly:

    sTEXT          a text
    i1 LLL DIGITS  an integer of 0 or more: the number of its digits in three digits, its digits
    i0 LLL DIGITS  a negative integer: both as complements to nine, so that the texts have the same
                   order as the numbers
    btrue bfalse   booleans
    n              null
"""

import json
from typing import Final

_NINES: Final = str.maketrans("0123456789", "9876543210")


def tag(value: object) -> str:
    """Return the text of a scalar. Raises `TypeError` if the value is not a scalar."""
    match value:
        case None:
            return "n"
        # `bool` comes first, because it is a subclass of `int`.
        case bool():
            return "btrue" if value else "bfalse"
        case int():
            digits = str(abs(value))
            if value >= 0:
                return f"i1{len(digits):03d}{digits}"
            return f"i0{999 - len(digits):03d}{digits.translate(_NINES)}"
        case str():
            return f"s{value}"
        case _:
            raise TypeError(f"{type(value).__name__} is not a scalar")


def tag_fields(body: str) -> str:
    """Return the tagged JSON of an event's fields, given as JSON."""
    return json.dumps(_tagged(json.loads(body)), ensure_ascii=False, separators=(",", ":"))


def _tagged(value: object) -> object:
    """Return a value of JSON with each scalar in it replaced by its text."""
    match value:
        case dict():
            return {name: _tagged(item) for name, item in value.items()}
        case list():
            return [_tagged(item) for item in value]
        case _:
            return tag(value)
