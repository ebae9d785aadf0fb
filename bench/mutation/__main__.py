"""Mutates the rules and asks the tests: `python -m bench.mutation --sample 60`, or all of them in under an hour.

One operator, comparison, constant, call or branch at a time is changed in the modules that decide what a block may
carry and what it does, never in place, and tests run until one fails. Mutants that none notices are listed;
docs/mutation.md says why they stay.

    operators    what is changed
    suite        the tests, collected once
    coverage     which of them executes what
    swap         a mutant into functions that are alive
    judges       quick, by swapping; careful, by importing
    children     a fork for each mutant
    results      a line of JSON for each

POSIX only.
"""

import argparse
import math
import os
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from bench.mutation.children import Answer
from bench.mutation.coverage import Coverage
from bench.mutation.judges import Judges, copy_project
from bench.mutation.operators import Mutant, mutants_of
from bench.mutation.results import Results

ROOT = Path(__file__).resolve().parents[2]

PROJECT = "project"
"""The copy that is judged: what is edited meanwhile does not matter."""

FILES = (
    "runtime/pallet_subscriber/child_trie.py",
    "runtime/pallet_subscriber/plan.py",
    "runtime/pallet_subscriber/meter.py",
    "runtime/pallet_subscriber/apply.py",
    "runtime/pallet_subscriber/delivered.py",
    "runtime/pallet_subscriber/cache/base.py",
    "runtime/pallet_subscriber/cache/nodes.py",
    "runtime/pallet_subscriber/cache/slots.py",
    "trie/step.py",
    "trie/proof.py",
    "trie/batch.py",
    "trie/nodes.py",
    "trie/mutable.py",
    "trie/bulk.py",
    "runtime/parachain/validate.py",
)


def judge(
    mutants: Sequence[Mutant], workers: int, folder: Path, results: Results, patience: float, *, careful: bool
) -> None:
    """Judge what `results` does not hold yet; the project is in `folder`."""
    progress = os.fdopen(os.dup(sys.stderr.fileno()), "w")  # the judges' own is silent

    def judges(name: str) -> Judges:
        def tell(mutant: Mutant, answer: Answer, seconds: float) -> None:
            results.write(mutant, name, answer, seconds)
            print(f"{name} {seconds:5.1f} s {answer['verdict']:>9}: {mutant}", file=progress, flush=True)

        return Judges(folder / PROJECT, workers, folder, tell, killers=results.killers(), patience=patience)

    unknown = [mutant for mutant in mutants if not results.is_known(mutant)]
    learned = results.path.with_suffix(".coverage.json")
    known = Coverage.load(learned, results.project)
    keep = partial(Coverage.save, path=learned, project=results.project)
    coverage = judges("quick").quick(FILES, unknown, known, keep)
    results.read()
    if careful:
        # What was swapped has failed no test that executes it: left to ask are those that start programs, which
        # import it. Where importing executes the statement, any test may depend on what it left.
        every, some = coverage.seconds.keys(), coverage.starting_programs()
        undecided = [mutant for mutant in results.undecided(mutants) if results.is_known(mutant)]
        cases = [(mutant, every if results.is_deferred(mutant) else some) for mutant in undecided]
        judges("careful").careful(cases, coverage.seconds)
        results.read()


def drawn(root: Path, files: Sequence[str], sample: int | None, seed: int) -> list[Mutant]:
    """The mutants of these files, or so many of them."""
    mutants = [mutant for file in files for mutant in mutants_of(root, file)]
    if sample is None or sample >= len(mutants):
        return mutants
    return [mutants[at] for at in sorted(random.Random(seed).sample(range(len(mutants)), sample))]


def main() -> int:
    """Reads what to mutate, judges, lists survivors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, help="only so many mutants, drawn from all")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--files", nargs="+", default=FILES, choices=FILES, metavar="FILE", help="only these modules")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=Path("out/mutation.jsonl"), help="where each verdict is written")
    parser.add_argument(
        "--resume", action="store_true", help="keep what was noticed, and verdicts on this very project"
    )
    parser.add_argument("--patience", type=float, default=math.inf, help="seconds of tests for the quick judge to run")
    parser.add_argument("--quick", action="store_true", help="leave out the careful judge")
    parser.add_argument("--list", action="store_true", help="show the mutants and end")
    chosen = parser.parse_args()
    if chosen.list:
        mutants = drawn(ROOT, chosen.files, chosen.sample, chosen.seed)
        print(*mutants, f"{len(mutants)} mutants", sep="\n")
        return 0
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutation-") as name:
        os.environ["TMPDIR"] = tempfile.tempdir = name  # tests that are cut short leave things there
        folder = Path(name)
        copy_project(ROOT, folder / PROJECT)
        mutants = drawn(folder / PROJECT, chosen.files, chosen.sample, chosen.seed)
        results = Results(chosen.out, folder / PROJECT, chosen.files, resume=chosen.resume)
        judge(mutants, max(1, chosen.workers), folder, results, chosen.patience, careful=not chosen.quick)
    print(*results.summary(mutants), f"{time.monotonic() - began:.0f} s", sep="\n")
    return 2 if results.undecided(mutants) and not chosen.quick else 0


if __name__ == "__main__":
    sys.exit(main())
