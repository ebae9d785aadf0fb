"""Verdicts in a file: one line of JSON per verdict, appended at once. The last line about a mutant counts."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

from bench.mutation.children import Answer
from bench.mutation.operators import Mutant

_NOTICED = {"killed", "timeout", "crash"}

_Identity = tuple[str, str, int, int, str]


class Results:
    """The known verdicts on the mutants of some files, in their present text."""

    def __init__(self, path: Path, root: Path, files: Sequence[str], *, resume: bool) -> None:
        """`root`: the copy of the project that is judged. Without `resume`, nothing is known and `path` is emptied."""
        self.path = path
        self.project = _digest(root)
        self._sources = {file: sha256((root / file).read_bytes()).hexdigest()[:16] for file in files}
        self._rows: dict[_Identity, dict[str, Any]] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        if resume and path.exists():
            with path.open("a", encoding="utf-8") as file:
                file.write("\n")  # after a line that was cut short
            self.read()
        else:
            path.write_text("", encoding="utf-8")

    def read(self) -> None:
        """Read the file's verdicts; lines that were cut short are skipped."""
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                row = json.loads(line)
            except json.JSONDecodeError:
                continue
            self._rows[row["file"], row["source"], row["start"], row["end"], row["after"]] = row

    def write(self, mutant: Mutant, judge: str, answer: Answer, seconds: float) -> None:
        """Add a verdict, for another process to read as well."""
        of = {"source": self._sources[mutant.file], "project": self.project}
        row = {**asdict(mutant), **of, "judge": judge, "seconds": round(seconds, 2), **answer}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    def of(self, mutant: Mutant) -> dict[str, Any] | None:
        """The last verdict."""
        return self._rows.get((mutant.file, self._sources[mutant.file], mutant.start, mutant.end, mutant.after))

    def is_known(self, mutant: Mutant) -> bool:
        """Whether there is a verdict. One that a mutant survived holds only for the tests that it survived."""
        row = self.of(mutant)
        if row is None or row["verdict"] == "doubtful":
            return False
        return row["verdict"] in _NOTICED or row["project"] == self.project

    def is_final(self, mutant: Mutant) -> bool:
        """Whether the mutant was noticed, or survived the careful judge too."""
        row = self.of(mutant)
        if row is None or not self.is_known(mutant):
            return False
        return row["verdict"] in _NOTICED or (row["judge"], row["verdict"]) == ("careful", "survived")

    def killers(self) -> Counter[tuple[str, str]]:
        """How many mutants of each file each test noticed."""
        noticed = (row for row in self._rows.values() if row["verdict"] in _NOTICED and "by" in row)
        return Counter((row["file"], row["by"]) for row in noticed)

    def is_deferred(self, mutant: Mutant) -> bool:
        """Whether the quick judge could not judge it."""
        row = self.of(mutant)
        return row is not None and row["verdict"] == "deferred"

    def undecided(self, mutants: Sequence[Mutant]) -> list[Mutant]:
        """The mutants without a final verdict."""
        return [mutant for mutant in mutants if not self.is_final(mutant)]

    def summary(self, mutants: Sequence[Mutant]) -> Iterator[str]:
        """The survivors, then the numbers by file."""
        counts: dict[str, Counter[str]] = {}
        for mutant in mutants:
            verdict = (self.of(mutant) or {"verdict": "unknown"})["verdict"]
            counts.setdefault(mutant.file, Counter())[verdict] += 1
            if verdict not in _NOTICED:
                yield f"{verdict}: {mutant}"
        for file, count in counts.items():
            yield f"{file}: {count.total()} mutants, " + ", ".join(
                f"{n} {verdict}" for verdict, n in sorted(count.items())
            )


def _digest(folder: Path) -> str:
    """A digest of all files of a folder, by path, size and content."""
    out = sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            out.update(f"{path.relative_to(folder)} {path.stat().st_size}\n".encode() + path.read_bytes())
    return out.hexdigest()[:16]
