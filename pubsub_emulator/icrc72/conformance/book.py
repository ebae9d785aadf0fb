"""The rules of `rules.toml` that a role is judged by, and the verdict of each."""

import tomllib
from collections.abc import Iterable
from importlib.resources import files
from typing import NamedTuple

PAIR = {"publisher": "member", "subscriber": "member", "broadcaster": "server", "orchestrator": "server"}
"""The table of rules that each role has in common with another."""


class Verdict(NamedTuple):
    """What a trial says about one rule: `broken` names each breach with its place; `shown` is how often it was met."""

    rule: str
    about: str
    shown: int
    broken: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """True when nothing broke it."""
        return not self.broken


def rules_of(role: str) -> dict[str, str]:
    """The rules that a role is judged by, and what each is about."""
    tables = tomllib.loads((files(__package__) / "rules.toml").read_text(encoding="utf-8"))
    return {**tables["every"], **tables[PAIR[role]], **tables[role]}


class Book:
    """The verdicts on a role."""

    def __init__(self, role: str) -> None:
        self.rules = rules_of(role)
        self.verdicts: list[Verdict] = []

    def judge(self, rule: str, shown: int, broken: Iterable[str]) -> None:
        """Add a verdict. A rule that was never met is no rule that holds: that itself is said."""
        self.verdicts.append(Verdict(rule, self.rules[rule], shown, tuple(broken)))

    def must(self, rule: str, holds: object, words: str, shown: int = 1) -> None:
        """Add a verdict that rests on one thing; `words` say what is where it does not hold."""
        self.judge(rule, shown, [] if holds else [words])

    def same(self, rule: str, found: list[int], due: list[int]) -> None:
        """Add a verdict on numbers that are to be what is due."""
        self.must(rule, found == due, f"{found} instead of {due}", len(due))
