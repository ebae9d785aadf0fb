"""Count the bytecode instructions of a line of the bench: `python -m bench.steps [NAME]`.

NAME is a part of the line's name. `--functions 20` prints the 20 functions with the most
instructions, and `--parts` the parts of judging a block (`bench.parts`). The numbers repeat to the
last digit, also on a busy machine, where times do not. Work in C counts as one call.
"""

import argparse
import sys
from itertools import chain

from bench.__main__ import MAKERS, chosen
from bench.measure import instructions
from bench.parts import counted_by_part

if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", nargs="?", default="simulated blocks")
    parser.add_argument("--functions", type=int, default=20)
    parser.add_argument("--parts", action="store_true", help="the parts of judging a block")
    given = parser.parse_args()
    races = chain.from_iterable(MAKERS[begins]() for begins in chosen([given.name]))
    race = next(race for race in races if given.name in race.name)
    if given.parts:
        by_part = counted_by_part(race.work)
        whole = by_part.total()
        print(f"{race.name} ({race.note or race.base}): {whole:,} instructions")
        for part, steps in by_part.most_common():
            print(f"{steps:12,} {100 * steps / whole:5.1f} %  {part}")
        sys.exit()
    counts = instructions(race.work)
    total = counts.total()
    print(f"{race.name} ({race.note or race.base}): {total:,} instructions")
    for code, steps in counts.most_common(given.functions):
        name = f"{code.co_filename.rpartition('pubsub_emulator/')[-1]} {code.co_qualname}"
        print(f"{steps:12,} {100 * steps / total:5.1f} %  {name}")
