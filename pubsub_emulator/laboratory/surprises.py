"""Groups the surprises of a campaign by cause. One case of each group is stored.

    kind       accepted wrongly   a verdict was due, but the block was accepted: a soundness failure
               refused wrongly    the block was valid, but was refused
               another verdict    the verdict was not the one that was due
               the verifier failed
    place      the steps that the shrunk case still needs, and whether a block or only a proof was
               judged

Cases of one kind with the same verdicts and the same place are a group. The stored case is the
smallest one.
"""

import re
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Final

from pubsub_emulator.laboratory.cases import Case, Found, write_case

_SPECIFIC: Final = re.compile(r"0x[0-9a-f]*|[0-9a-f]{8,}|[0-9]+")
"""The parts of an error message that differ between similar errors."""


class SurpriseKind(Enum):
    """Kinds of wrong verdicts, the worst first."""

    ACCEPTED = "accepted wrongly"
    FAILED = "the verifier failed"
    REFUSED = "refused wrongly"
    OTHER = "another verdict"


def kind_of(expected: Found, verdicts: Found) -> SurpriseKind:
    """Return the kind of a surprise."""
    if any(verdict.startswith("!") for verdict in verdicts):
        return SurpriseKind.FAILED
    if expected and not verdicts:
        return SurpriseKind.ACCEPTED
    return SurpriseKind.REFUSED if not expected else SurpriseKind.OTHER


@dataclass(frozen=True, slots=True)
class GroupKey:
    """The properties that the cases of a group share."""

    kind: SurpriseKind
    due: Found
    """The expected verdicts."""
    found: Found
    """The verdicts that were found."""
    place: str
    """The kinds of steps, and whether a block or only a proof was judged."""


def group_key(case: Case) -> GroupKey:
    """Return the group that a case belongs to.

    Numbers and hashes in the messages of exceptions are ignored.
    """
    steps = sorted({type(step).__name__ for step in case.shrunk})
    judged = "a proof alone" if case.block is None else "a block"
    found = tuple(
        _SPECIFIC.sub("#", verdict) if verdict.startswith("!") else verdict
        for verdict in case.verdicts
    )
    place = f"{' + '.join(steps) or 'the honest one'}, {judged}"
    return GroupKey(kind_of(case.expected, case.verdicts), case.expected, found, place=place)


@dataclass(slots=True)
class SurpriseGroup:
    """The cases of one group."""

    case: Case
    """The smallest case."""
    count: int = 1
    """The number of cases."""
    file: Path | None = None
    """The file with the smallest case, if any."""

    def takes(self, case: Case) -> bool:
        """Return whether `case` is smaller than the stored one."""
        return (len(case.shrunk), len(case.to_json())) < (
            len(self.case.shrunk),
            len(self.case.to_json()),
        )


@dataclass(slots=True)
class Surprises:
    """All surprises of a campaign, by group."""

    out: Path | None = None
    """The folder to write the stored cases to, if any."""
    groups: dict[GroupKey, SurpriseGroup] = field(default_factory=dict)

    def add(self, case: Case) -> None:
        """Count a case, and store it if it is the smallest one of its group."""
        key = group_key(case)
        group = self.groups.get(key)
        if group is None:
            self.groups[key] = group = SurpriseGroup(case)
        else:
            group.count += 1
            if not group.takes(case):
                return
            group.case = case
        if self.out is not None:
            self.out.mkdir(parents=True, exist_ok=True)
            previous_file = group.file
            group.file = write_case(case, self.out)
            if previous_file is not None and previous_file != group.file:
                previous_file.unlink(missing_ok=True)

    @property
    def cases(self) -> list[Case]:
        """Return the stored case of each group, the worst kind first."""
        return [group.case for _, group in self.ordered()]

    @property
    def files(self) -> list[Path]:
        """Return the files of the stored cases, in the same order."""
        return [group.file for _, group in self.ordered() if group.file is not None]

    @property
    def total(self) -> int:
        """Return the number of surprising cases."""
        return sum(group.count for group in self.groups.values())

    def count(self, kind: SurpriseKind) -> int:
        """Return the number of surprising cases of a kind."""
        return sum(group.count for key, group in self.groups.items() if key.kind is kind)

    def ordered(self) -> list[tuple[GroupKey, SurpriseGroup]]:
        """Return the groups, the worst kind first and then the largest."""
        worst = list(SurpriseKind)
        return sorted(
            self.groups.items(), key=lambda entry: (worst.index(entry[0].kind), -entry[1].count)
        )
