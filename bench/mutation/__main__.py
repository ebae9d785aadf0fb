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
import os
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.mutation.children import Answer
from bench.mutation.coverage import Coverage
from bench.mutation.judges import Judges, copy_project, digest
from bench.mutation.operators import Mutant, mutants_of
from bench.mutation.results import Results

ROOT = Path(__file__).resolve().parents[2]

FILES = (
    "runtime/pallet_subscriber/plan.py",
    "runtime/pallet_subscriber/meter.py",
    "runtime/pallet_subscriber/apply.py",
    "runtime/pallet_subscriber/delivered.py",
    "runtime/pallet_subscriber/cache/base.py",
    "runtime/pallet_subscriber/cache/nodes.py",
    "runtime/pallet_subscriber/cache/slots.py",
    "trie/walk.py",
    "trie/proof.py",
    "runtime/parachain_system/validate.py",
)


def judge(mutants: Sequence[Mutant], workers: int, results: Results, *, careful: bool) -> None:
    """Judge what `results` does not hold yet, all by the code that stands in the project now."""
    progress = os.fdopen(os.dup(sys.stderr.fileno()), "w")  # the judges' own is silent
    with tempfile.TemporaryDirectory(prefix="mutation-") as name:
        folder = Path(name)
        os.environ["TMPDIR"] = tempfile.tempdir = name  # tests that are cut short leave things there
        copy_project(ROOT, folder / "project")

        def tell(judge: str, mutant: Mutant, answer: Answer, seconds: float) -> None:
            results.write(mutant, judge, answer, seconds)
            print(f"{judge} {seconds:5.1f} s {answer['verdict']:>9}: {mutant}", file=progress, flush=True)

        def judges(name: str) -> Judges:
            return Judges(folder / "project", workers, folder, lambda *told: tell(name, *told))

        unknown = [mutant for mutant in mutants if results.of(mutant) is None]
        learned, project = results.path.with_suffix(".coverage.json"), digest(folder / "project")
        known = Coverage.load(learned, project)
        coverage = judges("quick").quick(FILES, unknown, known, lambda new: new.save(learned, project))
        results.read()
        if careful:
            # What was swapped has failed no test that executes it: left to ask are those that start programs, which
            # import it. Where importing executes the statement, any test may stand on what it left.
            every, some = coverage.seconds.keys(), coverage.starting_programs()
            undecided = results.undecided(mutants)
            cases = [(mutant, every if results.is_deferred(mutant) else some) for mutant in undecided]
            judges("careful").careful(cases, coverage.seconds)
            results.read()


def main() -> int:
    """Reads what to mutate, judges, lists survivors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, help="only so many mutants, drawn from all")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--files", nargs="+", default=FILES, metavar="FILE", help="only these modules")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=Path("out/mutation.jsonl"), help="where each verdict is written")
    parser.add_argument("--resume", action="store_true", help="keep the verdicts found there on unchanged modules")
    parser.add_argument("--quick", action="store_true", help="leave out the careful judge")
    parser.add_argument("--list", action="store_true", help="show the mutants and end")
    chosen = parser.parse_args()
    mutants = [mutant for file in chosen.files for mutant in mutants_of(ROOT, file)]
    if chosen.sample is not None and chosen.sample < len(mutants):
        picked = sorted(random.Random(chosen.seed).sample(range(len(mutants)), chosen.sample))
        mutants = [mutants[at] for at in picked]
    if chosen.list:
        print(*mutants, f"{len(mutants)} mutants", sep="\n")
        return 0
    began = time.monotonic()
    results = Results(chosen.out, ROOT, chosen.files, resume=chosen.resume)
    judge(mutants, max(1, chosen.workers), results, careful=not chosen.quick)
    print(*results.summary(mutants), f"{time.monotonic() - began:.0f} s", sep="\n")
    return 2 if results.undecided(mutants) and not chosen.quick else 0


if __name__ == "__main__":
    sys.exit(main())
