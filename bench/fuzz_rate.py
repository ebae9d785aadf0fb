"""How many changed proofs per second are made, judged and compared with what was due, on one core.

    python -m bench.fuzz_rate [--cases 4000] [--nodes 50]

`50 nodes`: one situation whose canonical proof has about that many nodes, changed in every way that needs no idea,
judged alone: no block is executed and nothing is sealed. `walk`: judging the canonical proof itself, the longest case.
`campaign`: a campaign over worlds of all kinds, by mutations only and by all strategies. CPU time of this process.
"""

import argparse
import time
from itertools import count

from pubsub_emulator.collator.cheats import STRATEGIES, Situation, expected_of_proof, propose
from pubsub_emulator.collator.cheats.steps import apply_to_proof
from pubsub_emulator.laboratory.campaign import campaign
from pubsub_emulator.laboratory.cases import JudgingContext
from pubsub_emulator.laboratory.worlds import World


def situation_of(nodes: int) -> Situation:
    """The first situation whose proof has about `nodes` nodes."""
    for number in count():
        world = World(b"rate %d" % number, proofs_only=True)
        for _ in range(4):
            now = world.situation()
            if abs(len(now.canonical) - nodes) <= nodes // 20:
                return now
            world.advance()
    raise AssertionError("counting has ended")


def rate(cases: int, began: float) -> str:
    """Cases per second of CPU time since `began`."""
    return f"{cases / (time.process_time() - began):9,.0f} /s"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=4000)
    parser.add_argument("--nodes", type=int, default=50)
    options = parser.parse_args()
    now = situation_of(options.nodes)
    bench, chosen = JudgingContext.of(now), (STRATEGIES["any-mutation"],)
    began = time.process_time()
    for case in range(options.cases):
        _, steps = propose(now, chosen, b"%d" % case)
        proof = apply_to_proof(now.canonical, steps)
        found = bench.judge_proof(now.view, proof)
        if found != tuple(verdict.value for verdict in expected_of_proof(now, proof)):
            raise AssertionError(f"case {case}: {found}")
    print(f"{len(now.canonical):4} nodes  {rate(options.cases, began)}")
    began = time.process_time()
    for _ in range(options.cases // 4):
        bench.judge_proof(now.view, now.canonical)
    print(f"walk        {rate(options.cases // 4, began)}")
    for name, strategies in (("mutations", ("any-mutation", "any-subset", "another-set")), ("all", None)):
        began = time.process_time()
        result = campaign(options.cases, "rate", strategies, first=())
        print(f"campaign    {rate(result.cases, began)}  {name}, {len(result.surprises)} surprises")


if __name__ == "__main__":
    main()
