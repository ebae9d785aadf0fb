"""Surprises of a campaign in groups: what one defect of a verifier leads to is one group, of which one case is kept.

    kind       accepted wrongly   a verdict was due and none was found: a soundness failure
               refused wrongly    none was due and one was found
               other verdict      one was due and another one was found
               the verifier failed
    place      which steps the shrunk case still needs, and whether a block or a proof alone was judged

Cases of one kind with the same verdicts and the same place are a group. The kept case is the smallest one.
"""

import re
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Final

from pubsub_emulator.laboratory.cases import Case, Found, write_case

_SPECIFIC: Final = re.compile(r"0x[0-9a-f]*|[0-9a-f]{8,}|[0-9]+")


class Kind(Enum):
    """Kinds of wrong verdicts, the worst first."""

    ACCEPTED = "accepted wrongly"
    FAILED = "the verifier failed"
    REFUSED = "refused wrongly"
    OTHER = "another verdict"


def kind_of(due: Found, found: Found) -> Kind:
    """The kind of a surprise."""
    if any(verdict.startswith("!") for verdict in found):
        return Kind.FAILED
    if due and not found:
        return Kind.ACCEPTED
    return Kind.REFUSED if not due else Kind.OTHER


@dataclass(frozen=True, slots=True)
class GroupKey:
    """The properties that the cases of a group share."""

    kind: Kind
    due: Found
    found: Found
    place: str


def group_key(case: Case) -> GroupKey:
    """The group that a case belongs to; numbers and hashes in the message of a failure do not matter."""
    steps = sorted({type(step).__name__ for step in case.shrunk})
    judged = "a proof alone" if case.block is None else "a block"
    found = tuple(_SPECIFIC.sub("#", verdict) if verdict.startswith("!") else verdict for verdict in case.verdicts)
    place = f"{' + '.join(steps) or 'the honest one'}, {judged}"
    return GroupKey(kind_of(case.expected, case.verdicts), case.expected, found, place)


@dataclass(slots=True)
class Group:
    """The cases of one group: how many there were, the smallest of them, and the file that it was written to."""

    case: Case
    count: int = 1
    file: Path | None = None

    def takes(self, case: Case) -> bool:
        """Whether `case` is smaller than the one that is kept."""
        return (len(case.shrunk), len(case.to_json())) < (len(self.case.shrunk), len(self.case.to_json()))


@dataclass(slots=True)
class Surprises:
    """All surprises of a campaign, by group; with `out`, the kept case of each group is a file there."""

    out: Path | None = None
    groups: dict[GroupKey, Group] = field(default_factory=dict)

    def add(self, case: Case) -> None:
        """Count a case, and keep it if it is the smallest one of its group."""
        key = group_key(case)
        group = self.groups.get(key)
        if group is None:
            self.groups[key] = group = Group(case)
        else:
            group.count += 1
            if not group.takes(case):
                return
            group.case = case
        if self.out is not None:
            self.out.mkdir(parents=True, exist_ok=True)
            before, group.file = group.file, write_case(case, self.out)
            if before is not None and before != group.file:
                before.unlink(missing_ok=True)

    @property
    def cases(self) -> list[Case]:
        """The kept case of each group, the worst kind first."""
        return [group.case for _, group in self.ordered()]

    @property
    def files(self) -> list[Path]:
        """The files of the kept cases, in the same order."""
        return [group.file for _, group in self.ordered() if group.file is not None]

    @property
    def total(self) -> int:
        """The number of cases that surprised."""
        return sum(group.count for group in self.groups.values())

    def count(self, kind: Kind) -> int:
        """The number of cases of a kind that surprised."""
        return sum(group.count for key, group in self.groups.items() if key.kind is kind)

    def ordered(self) -> list[tuple[GroupKey, Group]]:
        """The groups, the worst kind first, then the largest."""
        worst = list(Kind)
        return sorted(self.groups.items(), key=lambda each: (worst.index(each[0].kind), -each[1].count))
