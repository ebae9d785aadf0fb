"""Campaigns, which check the verdicts on many cheats in many small worlds.

    world ──situation──► honest block    must be accepted
                      ──► strategies     must get the verdicts that comparing sets gives (PS-52)
                      ──► afterwards     the parent's state must not have changed (PS-53)
          ──advance──► next situation

A world is used for many cases, because building it is expensive. Cases that only change the list of
proof nodes are judged without executing the block again. Half of the cases use the strategies that
were tried least in their world. With a `Guide`, a third is made from earlier cases that showed
something new. A surprising case is shrunk, and the smallest of each group is stored as a `Case`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from time import monotonic
from typing import Final

from pubsub_emulator.collator import cheats
from pubsub_emulator.collator.cheats import STRATEGIES, Situation, Strategy
from pubsub_emulator.collator.cheats.mutations import MUTATIONS
from pubsub_emulator.collator.cheats.steps import CheatStep, apply_to_proof, shrink
from pubsub_emulator.laboratory.cases import Case, Found, JudgingContext, read_case
from pubsub_emulator.laboratory.mutation import NO_LINES
from pubsub_emulator.laboratory.novelty import (
    PROGRESS,
    BadCorpus,
    Guide,
    read_corpus,
    read_progress,
    write_progress,
)
from pubsub_emulator.laboratory.surprises import Surprises
from pubsub_emulator.laboratory.worlds import World, fresh_state
from pubsub_emulator.primitives.draws import Draws
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.runtime.pallet_subscriber.plan import plan
from pubsub_emulator.runtime.rules import SHIPPED, Rules

Progress = Callable[[int, int | None], None]
"""Called with the number of cases done and the number wanted, or `None` if only time limits them.
"""

BLOCKS_A_WORLD: Final = 8
"""Situations of one world."""

CASES_A_PROOF: Final = 60
"""Cases per situation in which a proof is judged without its block."""

CASES_A_BLOCK: Final = 12
"""Cases per situation in which a whole block is judged, which takes about fifty times as long."""

IDLE_WORLDS: Final = 50
"""The number of consecutive worlds without a case after which a campaign gives up."""

NO_EFFECT: Final = "no effect"
"""The result of a case whose steps lead to the honest block."""


class UnknownStrategy(PubsubError):
    """A name that no strategy has."""


@dataclass(slots=True)
class CampaignResult:
    """The result of a campaign."""

    cases: int = 0
    """All cases."""
    honest: int = 0
    """Honest blocks."""
    rejected: int = 0
    """Cases with a verdict."""
    accepted_equal: int = 0
    """Cases that were rightly accepted, because their set of nodes is the canonical one."""
    stopped: int = 0
    """Situations in which the honest walk stopped at the budget, before its last item."""
    found: Surprises = field(default_factory=Surprises)
    """The surprises."""
    by_strategy: dict[str, dict[str, int]] = field(default_factory=dict)
    """The number of cases by strategies (joined by +) and first verdict.

    The verdict is `Accepted` for a block without offences, and `NO_EFFECT` for the honest block.
    """
    missed: tuple[str, ...] = ()
    """Strategies that were not used in any case."""

    @property
    def surprises(self) -> list[Case]:
        """Return the smallest case of each group of surprises, the worst first."""
        return self.found.cases

    @property
    def files(self) -> list[Path]:
        """Return the files of the surprises."""
        return self.found.files

    @property
    def tried(self) -> Counter[str]:
        """Return the number of cases by strategy."""
        counts: Counter[str] = Counter()
        for names, verdicts in self.by_strategy.items():
            counts.update(dict.fromkeys(names.split("+"), sum(verdicts.values())))
        return counts

    def count(
        self, names: Iterable[str], verdicts: Found, expected: Found, *, idle: bool = False
    ) -> None:
        """Count a case. With `idle`, its steps lead to the honest block or proof."""
        self.cases += 1
        if verdicts:
            self.rejected += 1
        elif not expected:
            self.accepted_equal += 1
        if verdicts:
            verdict = verdicts[0]
        elif idle:
            verdict = NO_EFFECT
        else:
            verdict = "Accepted"
        row = self.by_strategy.setdefault("+".join(names), {})
        row[verdict] = row.get(verdict, 0) + 1


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """The verdicts on a case that was judged again."""

    case: Case
    full: Found
    """The verdicts on the full sequence of steps."""
    shrunk: Found
    """The verdicts on the shrunk sequence of steps."""

    @property
    def surprising(self) -> bool:
        """Return whether the verdicts still differ from the expected ones."""
        return self.shrunk != self.case.expected

    @property
    def reproduced(self) -> bool:
        """Return whether the verdicts are those in the file."""
        return self.shrunk == self.case.verdicts


def replay(path: Path | str, rules: Rules = SHIPPED) -> ReplayResult:
    """Replay the case in a file, judged by `rules`. Raises `BadCase` or `OSError`."""
    return replay_case(read_case(Path(path), rules))


def replay_case(case: Case) -> ReplayResult:
    """Replay a case with all steps, and with the shrunk ones."""
    return ReplayResult(case, case.play(case.steps), case.play(case.shrunk))


def corpus() -> list[tuple[str, Case]]:
    """Return the project's cases with their file names.

    There is one for every strategy, and all former surprises.
    """
    folder = resources.files("pubsub_emulator.laboratory.corpus")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".json"))
    return [(name, Case.from_json((folder / name).read_text(encoding="utf-8"))) for name in names]


def campaign(  # noqa: PLR0917  # the order in which the command line has them
    cases: int | None,
    seed: bytes | int | str,
    strategies: Sequence[str] | None = None,
    on_progress: Progress | None = None,
    out: Path | None = None,
    first: Iterable[Case] | None = None,
    *,
    minutes: float | None = None,
    kept: Path | None = None,
    stop: Callable[[], bool] | None = None,
    rules: Rules = SHIPPED,
) -> CampaignResult:
    """Try `cases` cheats with the named strategies, or with all.

    The result is the same for the same arguments. The cases in `first`, by default the project's
    corpus, are replayed before. With `out`, the smallest surprise of each group is written into
    that folder. `minutes` and `stop` end the campaign after the case that is running. `kept` is a
    folder with cases that guide the campaign. The campaign adds cases to it, and continues where
    the last one with this seed ended. Blocks are made and judged by `rules`. Raises
    `UnknownStrategy`, `BadCorpus` or `BadCase`.
    """
    until = None if minutes is None else monotonic() + 60 * minutes
    start = seed if isinstance(seed, bytes) else str(seed).encode()
    run = _Campaign(
        cases,
        start,
        strategies,
        on_progress=on_progress,
        out=out,
        until=until,
        stop=stop,
        rules=rules,
    )
    run.replay(first)
    number = 0
    idle = 0
    if kept is not None:
        earlier = read_corpus(kept, rules)
        run.replay(earlier)
        run.guide = Guide(kept)
        run.guide.remember(earlier)
        next_world = read_progress(kept, run.seed).get("next_world", 0)
        if not isinstance(next_world, int) or isinstance(next_world, bool) or next_world < 0:
            raise BadCorpus(f"{kept / PROGRESS}: next_world: not a number from 0 on")
        number = next_world
    while not run.over() and idle < IDLE_WORLDS:
        cases_before = run.result.cases
        run.world(number)
        idle = idle + 1 if run.result.cases == cases_before else 0
        number += 1
        if kept is not None and not run.late():
            write_progress(kept, run.seed, {"next_world": number})
    cases_by_strategy = run.result.tried
    run.result.missed = tuple(
        strategy.name for strategy in run.strategies if not cases_by_strategy[strategy.name]
    )
    return run.result


def named(strategies: Sequence[str] | None, every: Iterable[str]) -> list[Strategy]:
    """Return the named strategies. Without names, return those of `every`.

    Raises `UnknownStrategy`.
    """
    for name in strategies or ():
        if name not in STRATEGIES:
            raise UnknownStrategy(cheats.no_strategy(name))
    return [STRATEGIES[name] for name in strategies or every]


@dataclass
class _Campaign:
    """A running campaign.

    Raises `UnknownStrategy` if there is no strategy of a given name.
    """

    wanted: int | None
    """The number of cases to try, or `None` if only time limits them."""
    seed: bytes
    names: Sequence[str] | None
    """The names of the strategies to use, or `None` for all."""
    on_progress: Progress | None
    out: Path | None
    until: float | None = None
    """The time, on the monotonic clock, at which to end."""
    stop: Callable[[], bool] | None = None
    """Returns whether to end."""
    guide: Guide | None = None
    """The corpus that guides the campaign, if any."""
    rules: Rules = SHIPPED
    tried: Counter[str] = field(default_factory=Counter)
    """The number of turns that each strategy had in this world."""

    def __post_init__(self) -> None:
        self.strategies = named(self.names, cheats.for_any_chain())
        self.proof_strategies = [strategy for strategy in self.strategies if strategy.on_proof]
        """The strategies that only change proofs. They also work on proofs without blocks."""
        self.result = CampaignResult(found=Surprises(self.out))

    def late(self) -> bool:
        """Return whether the time has passed or the caller wants to stop."""
        return (self.until is not None and monotonic() >= self.until) or (
            self.stop is not None and self.stop()
        )

    def over(self) -> bool:
        """Return whether all wanted cases were tried, or the campaign must end."""
        return (self.wanted is not None and self.result.cases >= self.wanted) or self.late()

    def replay(self, cases: Iterable[Case] | None) -> None:
        """Replay cases, by default those of the corpus, and collect the surprising ones."""
        for case in (case for _, case in corpus()) if cases is None else cases:
            replayed = replay_case(case)
            if replayed.surprising:
                self.result.found.add(replace(case, verdicts=replayed.shrunk))

    def world(self, number: int) -> None:
        """Try cheats in one world until the campaign is over."""
        self.tried = Counter()
        # Judging a proof without its block is cheap, so it is done in three of four worlds. If some
        # strategies need a block, they are tried in each fourth world.
        needs_blocks = len(self.proof_strategies) < len(self.strategies)
        proofs_only = bool(self.proof_strategies) and not (needs_blocks and number % 4 == 0)
        strategies = self.proof_strategies if proofs_only else self.strategies
        world = World(self.seed_of(f"world/{number}"), proofs_only=proofs_only, rules=self.rules)
        for block in range(BLOCKS_A_WORLD):
            if self.over():
                break
            self.situation(world.situation(), f"{number}/{block}", strategies)
            world.advance()

    def seed_of(self, label: str) -> bytes:
        """Return a seed derived from the campaign's seed and a label."""
        return Draws(self.seed, label).take(32)

    def situation(self, now: Situation, label: str, strategies: list[Strategy]) -> None:
        """Try the honest block and several cheats in one situation.

        In a world in which only proofs are judged, the block is its proof alone. Afterwards, the
        parent's state must be unchanged.
        """
        judging = JudgingContext.of(now)
        digest_before = _digest(now)
        self._try_honest(now, judging, label)
        draws = Draws(self.seed, f"cases/{label}")
        cases = CASES_A_BLOCK if now.budget is None else CASES_A_PROOF
        for number in range(cases):
            if self.over():
                break
            names, steps = self._proposed(now, draws, number, strategies)
            if steps:
                self._try(now, judging, f"{label}/{number}", names=names, steps=steps)
        if _digest(now) != digest_before:
            failure = ("!the parent's state was written to",)
            self._add_failure(now, judging, f"{label}/state", failure)

    def _try_honest(self, now: Situation, judging: JudgingContext, label: str) -> None:
        """Check that the honest block has no verdict, and that its proof leads to the same walk."""
        # A walk that reached its last item has no cursor.
        if now.walked.cursor is not None:
            self.result.stopped += 1
        failures = self.judge(now, judging, ()) or _same_walk(now)
        self.result.honest += 1
        if failures:
            self._add_failure(now, judging, f"{label}/honest", failures)

    def _add_failure(
        self, now: Situation, judging: JudgingContext, label: str, failures: Found
    ) -> None:
        """Collect a surprise that no cheat caused."""
        self.result.found.add(
            self.case(now, judging, label, names=(), steps=(), shrunk=(), found=failures)
        )

    def _proposed(
        self, now: Situation, draws: Draws, number: int, strategies: list[Strategy]
    ) -> tuple[tuple[str, ...], tuple[CheatStep, ...]]:
        """Return the strategies' names and the steps of a situation's case `number`.

        There are no steps if the strategies have nothing to change.
        """
        # Drawn in every case, because later draws depend on it.
        count = draws.choice((1, 1, 1, 1, 2, 3))
        # Every other case uses the strategy that was tried least in this world.
        uses_least_tried = number % 2 == 1
        picked: tuple[Strategy, ...]
        if uses_least_tried:
            least_tried = min(strategies, key=lambda strategy: self.tried[strategy.name])
            self.tried[least_tried.name] += 1
            picked = (least_tried,)
        else:
            # Mutations do not need a second walk of the proof, so many can be tried per second.
            cheap = [strategy for strategy in strategies if strategy in MUTATIONS]
            picked = tuple(
                draws.choice(cheap if cheap and draws.one_in(2) else strategies)
                for _ in range(count)
            )
        names, steps = cheats.propose(now, picked, draws.take(16))
        if self.guide is not None and not uses_least_tried and self.guide.wants(draws):
            return self.guide.made(draws, (names, steps))
        return names, steps

    def _try(
        self,
        now: Situation,
        judging: JudgingContext,
        label: str,
        names: tuple[str, ...],
        steps: tuple[CheatStep, ...],
    ) -> None:
        """Judge one case, compare its verdicts with the expected ones, and record the result."""
        expected = _expected(now, steps)
        lines = None if self.guide is None else self.guide.noted(Draws(self.seed, f"lines/{label}"))
        with NO_LINES if lines is None else lines:
            found = self.judge(now, judging, steps)
        self.result.count(names, found, expected, idle=not found and _changes_nothing(now, steps))
        if self.on_progress is not None and self.result.cases % 256 == 0:
            self.on_progress(self.result.cases, self.wanted)
        proof_only = now.budget is not None
        if self.guide is not None and self.guide.is_new(found, lines, proof_only=proof_only):
            self.guide.keep(
                self.case(now, judging, label, names=names, steps=steps, shrunk=steps, found=found)
            )
        if found != expected:

            def is_as_surprising(fewer: tuple[CheatStep, ...]) -> bool:
                """Whether fewer steps give the same verdicts, and these are again unexpected."""
                return self.judge(now, judging, fewer) == found != _expected(now, fewer)

            shrunk = shrink(steps, is_as_surprising)
            self.result.found.add(
                self.case(now, judging, label, names=names, steps=steps, shrunk=shrunk, found=found)
            )

    def judge(self, now: Situation, judging: JudgingContext, steps: tuple[CheatStep, ...]) -> Found:
        """Return the verifier's verdicts on the honest block or proof, changed by these steps."""
        if now.budget is not None:
            return judging.judge_proof(now.view, apply_to_proof(now.canonical, steps))
        return judging.judge(cheats.carry_out(now, steps) if steps else now.honest)

    def case(  # noqa: PLR0917  # a case has this many parts
        self,
        now: Situation,
        judging: JudgingContext,
        label: str,
        names: tuple[str, ...],
        steps: tuple[CheatStep, ...],
        shrunk: tuple[CheatStep, ...],
        found: Found,
    ) -> Case:
        """Return a tried case with everything that a file needs to replay it."""
        block = None if now.budget is not None else now.honest
        label = f"{self.seed.hex()}/{label}"
        return Case(
            label,
            names,
            judging,
            seeds=now.seeds,
            block=block,
            proof=now.canonical,
            steps=steps,
            shrunk=shrunk,
            expected=_expected(now, shrunk),
            verdicts=found,
        )


def _same_walk(now: Situation) -> Found:
    """Return a failure unless the walk over the canonical proof equals that over the whole state.

    Both must stop at the same item, charge the same costs, and find the same changes.
    """
    source = {blake2_256(node): node for node in now.canonical}
    calls = now.calls_in(now.messages)
    over_proof = plan(
        now.view,
        now.relay.storage_root,
        source,
        now.allowed,
        calls,
        authorities=now.authorities,
    )
    over_state = now.walked
    is_same = (
        over_proof.missing is None
        and over_proof.cursor == over_state.cursor
        and over_proof.used == over_state.used
        and over_proof.changes == over_state.changes
        and list(over_proof.taken) == list(over_state.taken)
    )
    return () if is_same else ("!the walk over the proof is another than over the relay state",)


def _expected(now: Situation, steps: tuple[CheatStep, ...]) -> Found:
    """Return the verdicts that the verifier must find after these steps."""
    if not steps:
        return ()
    if now.budget is not None:
        verdicts = cheats.expected_of_proof(now, apply_to_proof(now.canonical, steps))
    else:
        verdicts = cheats.expected(now, cheats.carry_out(now, steps))
    return tuple(verdict.value for verdict in verdicts)


def _changes_nothing(now: Situation, steps: tuple[CheatStep, ...]) -> bool:
    """Return whether the steps lead to the honest block or proof."""
    if now.budget is not None:
        return apply_to_proof(now.canonical, steps) == tuple(now.canonical)
    return cheats.carry_out(now, steps) == now.honest


def _digest(now: Situation) -> bytes:
    """Return a hash over all entries and the root of the parent's state.

    The hash also covers a root that is computed from scratch, so that a wrong cached node or hash
    changes it.
    """
    hashes: list[bytes] = []
    for key, value in now.parent.state.top_entries():
        hashes += (blake2_256(key), blake2_256(value))
    return blake2_256(
        b"".join(hashes) + now.parent.state.root() + fresh_state(now.parent.state).root()
    )
