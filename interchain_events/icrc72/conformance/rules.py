"""The rules that the kit judges: how binding each is, and where the draft says so."""

import tomllib
from importlib.resources import files
from typing import Final, NamedTuple

PAIR: Final = {
    "publisher": "member",
    "subscriber": "member",
    "broadcaster": "server",
    "orchestrator": "server",
}
"""For each role, the table in `rules.toml` that it shares with another one."""
REQUIRED: Final = "required"
"""The level of a rule without which a canister does not work with others."""
RECOMMENDED: Final = "recommended"
"""The level of a rule that the draft recommends, or that is optional in it."""
EXTENSION: Final = "extension"
"""The level of a rule of another draft, which a canister need not support."""
LEVELS: Final = (REQUIRED, RECOMMENDED, EXTENSION)
"""The levels, the most binding first."""
EXTENSIONS: Final = {"icrc77": "ICRC-77"}
"""The drafts of extensions by their names on the command line."""


class Rule(NamedTuple):
    """A rule of a role."""

    about: str
    """The rule in words."""
    level: str
    """One of `LEVELS`."""
    place: str
    """The place in the draft: its name, and the section or method."""
    text: str
    """The words of the draft there."""


CAUSES: Final = {
    "IC-44": ("IC-11", "IC-4"),
    "IC-44 own": ("IC-11",),
    "IC-39 subscription": ("IC-11", "IC-32"),
    "IC-39 publication": ("IC-11", "IC-31"),
    "RP-10": ("IC-11", "IC-4", "IC-8", "IC-32", "IC-44"),
    "IC-8 state": ("IC-8",),
    "RP-10 again": ("IC-11", "IC-4", "IC-8", "IC-32", "IC-44"),
    "I1": ("IC-11", "IC-4", "IC-8", "IC-8 state", "IC-44"),
    "I1 once": ("IC-8 state",),
    "I1 order": ("IC-8 state", "I1 once"),
    "IC-20": ("IC-4",),
    "IC-22": ("IC-4",),
    "IC-25 ids": ("IC-4",),
    "IC-7": ("IC-4",),
    "IC-48": ("IC-11", "IC-4", "IC-39 entry"),
    "RP-5": ("RP-2", "RP-2 open"),
}
"""For each rule, those of which a breach usually breaks it as well."""


def rules_of(role: str, with_: tuple[str, ...] = ()) -> dict[str, Rule]:
    """Return the rules by which a role is judged, by number.

    `with_` are the extensions (keys of `EXTENSIONS`) that the canister claims to support. Their
    rules are then required.
    """
    tables = tomllib.loads((files(__package__) / "rules.toml").read_text(encoding="utf-8"))
    claimed = tuple(EXTENSIONS[extension] for extension in with_)
    rules: dict[str, Rule] = {}
    for table in ("every", PAIR[role], role):
        for name, row in tables[table].items():
            rule = Rule(**row)
            if rule.level == EXTENSION and rule.place.startswith(claimed):
                rule = rule._replace(level=REQUIRED)
            rules[name] = rule
    return rules
