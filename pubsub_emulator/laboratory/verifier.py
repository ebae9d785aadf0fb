"""Compares another verifier with ours. Both judge the same cases, and differences are stored.

The other verifier is a program that reads one case per line on standard input and writes one answer
per line to standard output.

    case      {"format": "pubsub-verifier/1", "id", "chain", "parent_header", "pre_state", "relay",
               "candidate"}, fields as in a fixture; `candidate` may be bytes that do not decode
    answer    {"id", "judged": [verdict, …], "offences": [verdict, …]}
              or {"id", "undecodable": "why"}

`judged` names the verdicts that the program supports. Only these are compared, so that a verifier
can grow step by step. A verifier that supports all may add `post_state_root` for a valid block.
"""

import json
import selectors
import shlex
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Final, Self

from pubsub_emulator.collator.cheats import STRATEGIES, Situation, carry_out, propose
from pubsub_emulator.collator.cheats.steps import CheatStep, shrink, to_json
from pubsub_emulator.laboratory.campaign import BLOCKS_A_WORLD, named
from pubsub_emulator.laboratory.cases import Case, JudgingContext
from pubsub_emulator.laboratory.differences import in_words
from pubsub_emulator.laboratory.mutation import mutate_bytes
from pubsub_emulator.laboratory.worlds import PARA, World
from pubsub_emulator.primitives.draws import Draws
from pubsub_emulator.primitives.errors import PubsubError, ScaleError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.runtime.parachain.block import Candidate, Verdict
from pubsub_emulator.runtime.rules import SHIPPED, Rules

FORMAT: Final = "pubsub-verifier/1"
CASES_A_BLOCK: Final = 12
"""Cheats per situation."""
MUTATIONS_A_BLOCK: Final = 4
"""Mutated blocks per situation."""
PATIENCE: Final = 60.0
"""The maximum time that a verifier may take for one case, in seconds."""

LONGEST_ANSWER: Final = 1 << 20
"""The maximum size of an answer in bytes."""

_NAMES: Final = frozenset(verdict.value for verdict in Verdict)


class VerifierFailed(PubsubError):
    """A verifier that cannot be started, has ended, did not answer in time, or answered wrongly."""


@dataclass(frozen=True, slots=True)
class VerifierAnswer:
    """A verifier's answer to a case."""

    judged: frozenset[str]
    """The verdicts that the verifier supports."""
    offences: frozenset[str]
    """The verdicts that the verifier found."""
    undecodable: str | None = None
    """The reason why the verifier could not decode the candidate, or `None` if it could."""
    post_state_root: str | None = None
    """The root after the block, if it computed one."""


def _answer(line: bytes, wanted: object) -> VerifierAnswer:
    """Return the answer in a line to the case with the id `wanted`. Raises `VerifierFailed`."""
    try:
        data = json.loads(line)
        if data["id"] != wanted:
            raise VerifierFailed(
                f"the verifier answered case {data['id']!r} when asked for {wanted}"
            )
        if "undecodable" in data:
            return VerifierAnswer(frozenset(), frozenset(), str(data["undecodable"]))
        judged = frozenset(data["judged"])
        offences = frozenset(data["offences"])
        unknown = sorted((judged | offences) - _NAMES)
        root = data.get("post_state_root")
    except (ValueError, KeyError, TypeError, RecursionError) as fault:
        raise VerifierFailed(f"no answer to case {wanted}: {line[:80]!r}") from fault
    if unknown:
        raise VerifierFailed(f"the verifier names a verdict that does not exist: {unknown[0]!r}")
    return VerifierAnswer(judged, offences, None, post_state_root=root)


class VerifierProcess:
    """A verifier that runs as a process until the context ends.

    All methods raise `VerifierFailed` if it breaks the protocol.
    """

    def __init__(self, command: str, patience: float = PATIENCE) -> None:
        """Start `command`. It is split into words like in a shell, but no shell runs it."""
        self.patience = patience
        words = shlex.split(command)
        if not words:
            raise VerifierFailed("the verifier's command is empty")
        try:
            self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603  # the user's own program
        except OSError as error:
            raise VerifierFailed(f"{words[0]}: {error.strerror}") from error
        self._selector = selectors.DefaultSelector()
        if self._process.stdout is not None:
            self._selector.register(self._process.stdout, selectors.EVENT_READ)
        self._buffer = b""

    def __enter__(self) -> Self:
        """Return the running verifier."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the input of the process, and kill it if it does not exit within two seconds."""
        self._selector.close()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    # The verifier ended before it read everything.
                    continue
        try:
            self._process.wait(2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def judge(self, case: dict[str, object]) -> VerifierAnswer:
        """Return the answer to one case."""
        self._send(json.dumps(case, separators=(",", ":")).encode() + b"\n")
        return _answer(self._line(), case["id"])

    def _send(self, line: bytes) -> None:
        """Write one line to the verifier."""
        pipe = self._process.stdin
        try:
            if pipe is not None:
                pipe.write(line)
                pipe.flush()
        except OSError as error:
            raise VerifierFailed(f"the verifier has ended{self._exit_code_text()}") from error

    def _line(self) -> bytes:
        """Read one line. Raises `VerifierFailed` if it is too late or too long."""
        deadline = monotonic() + self.patience
        pipe = self._process.stdout
        while b"\n" not in self._buffer:
            if pipe is None or not self._selector.select(max(deadline - monotonic(), 0)):
                raise VerifierFailed(
                    f"the verifier did not answer within {self.patience:g} seconds"
                )
            part = pipe.read1(1 << 16)  # type: ignore[attr-defined]  # a buffered reader, which typeshed calls IO
            if not part:
                raise VerifierFailed(f"the verifier has ended{self._exit_code_text()}")
            self._buffer += part
            if len(self._buffer) > LONGEST_ANSWER:
                raise VerifierFailed(
                    f"the verifier's answer is longer than {LONGEST_ANSWER:,} bytes"
                )
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _exit_code_text(self) -> str:
        """Return the exit code as text for an error message."""
        try:
            return f" with exit code {self._process.wait(2)}"
        except subprocess.TimeoutExpired:
            return ""


@dataclass(frozen=True, slots=True)
class VerifierDifference:
    """A case on which the two verifiers differ, after shrinking."""

    strategies: tuple[str, ...]
    steps: tuple[CheatStep, ...]
    case: dict[str, object]
    """The case as the other verifier received it."""
    ours: str
    """The result of our verifier."""
    theirs: str
    """The result of the other verifier."""
    judged: tuple[str, ...] = ()
    """The verdicts that the other verifier supports. Only these are compared."""

    @property
    def group(self) -> str:
        """Return the two results. Differences with the same results usually have one cause."""
        return f"ours {self.ours}, theirs {self.theirs}"

    def to_json(self) -> str:
        """Return the content of the file."""
        names = ("ours", "theirs", "judged", "strategies", "steps", "case")
        rows = {
            **{name: getattr(self, name) for name in names},
            "steps": list(map(to_json, self.steps)),
        }
        return json.dumps(rows, indent=1) + "\n"


@dataclass(slots=True)
class VerifierComparison:
    """The result of a comparison of two verifiers."""

    cases: int = 0
    by_verdict: Counter[str] = field(default_factory=Counter)
    """Cases by our first verdict."""
    judged: set[str] = field(default_factory=set)
    """All verdicts that the other verifier supports."""
    differences: dict[str, list[VerifierDifference]] = field(default_factory=dict)
    """The differences by group."""

    @property
    def differing(self) -> int:
        """Return the number of cases with different results."""
        return sum(map(len, self.differences.values()))


Judge = Callable[[dict[str, object]], VerifierAnswer]
"""Sends a case to the other verifier and returns its answer."""


class _Run:
    """A comparison that is under way."""

    def __init__(
        self, judge: Judge, wanted: int, seed: str, strategies: Sequence[str] | None
    ) -> None:
        self.judge = judge
        self.wanted = wanted
        self.seed = seed.encode()
        self.strategies = named(strategies, STRATEGIES)
        self.result = VerifierComparison()

    def situation(self, now: Situation, label: str) -> None:
        """Compare the verifiers on the honest block, on cheats, and on mutated bytes."""
        judging = JudgingContext.of(now)
        draws = Draws(self.seed, f"verifier/{label}")
        self._try(now, judging, (), steps=())
        for _ in range(CASES_A_BLOCK):
            names, steps = propose(now, (draws.choice(self.strategies),), draws.take(16))
            if steps:
                self._try(now, judging, names, steps=steps)
        honest = now.honest.encode()
        for _ in range(MUTATIONS_A_BLOCK):
            self._compare(judging, ("bytes",), (), raw=mutate_bytes(honest, (honest,), draws))

    def kept(self, case: Case) -> None:
        """Compare the verifiers on a stored case. A case that only has a proof is skipped."""
        if case.block is not None:
            raw = case.changed_block(case.block, case.shrunk).encode()
            self._compare(case.judging, case.strategies, case.shrunk, raw=raw)

    def _try(
        self,
        now: Situation,
        judging: JudgingContext,
        names: tuple[str, ...],
        steps: tuple[CheatStep, ...],
    ) -> None:
        """Compare the verifiers on the block after some steps.

        If the results differ, the steps are shrunk first.
        """

        def encoded(chosen: tuple[CheatStep, ...]) -> bytes:
            return (carry_out(now, chosen) if chosen else now.honest).encode()

        raw = encoded(steps)
        _, ours, theirs = self._difference(judging, raw)
        if ours != theirs and steps:

            def has_same_results(fewer: tuple[CheatStep, ...]) -> bool:
                return self._difference(judging, encoded(fewer))[1:] == (ours, theirs)

            steps = shrink(steps, has_same_results)
            raw = encoded(steps)
        self._compare(judging, names, steps, raw=raw)

    def _difference(self, judging: JudgingContext, raw: bytes) -> tuple[VerifierAnswer, str, str]:
        """Return the other verifier's answer, our result and its result.

        If one of the two cannot decode the block, the results say who can. Otherwise they have the
        verdicts that the other verifier supports.
        """
        answer = self.judge(case_of(judging, raw, self.result.cases))
        verdicts = judging.judge_bytes(raw)
        is_undecodable = answer.undecodable is not None
        if is_undecodable:
            theirs = "undecodable"
        elif verdicts is None:
            theirs = "decodes"
        else:
            theirs = "+".join(sorted(answer.offences & answer.judged)) or "no offence"
        ours = in_words(verdicts, answer.judged, decoding_only=is_undecodable)
        return answer, ours, theirs

    def _compare(
        self,
        judging: JudgingContext,
        names: tuple[str, ...],
        steps: tuple[CheatStep, ...],
        raw: bytes,
    ) -> None:
        """Compare the verifiers on the bytes of a block and record the result."""
        if self.result.cases >= self.wanted:
            return
        answer, ours, theirs = self._difference(judging, raw)
        verdicts = judging.judge_bytes(raw)
        verdict = "undecodable" if verdicts is None else next(iter(verdicts), "accepted")
        self.result.by_verdict[verdict] += 1
        self.result.judged |= answer.judged
        if ours != theirs:
            judged = tuple(sorted(answer.judged))
            difference = VerifierDifference(
                names,
                steps,
                case_of(judging, raw, self.result.cases),
                ours=ours,
                theirs=theirs,
                judged=judged,
            )
            self.result.differences.setdefault(difference.group, []).append(difference)
        self.result.cases += 1


def case_of(judging: JudgingContext, raw: bytes, number: int) -> dict[str, object]:
    """Return the case of a candidate's bytes in the form that a verifier reads."""
    try:
        relay_parent = Candidate.decode(raw).inherent.relay_parent_number
    except ScaleError:
        relay_parent = judging.relays[-1][0]
    root = next((root for known, root in judging.relays if known == relay_parent), None)
    return {
        "format": FORMAT,
        "id": number,
        "chain": PARA,
        "parent_header": hexed(judging.parent.header.encode()),
        "pre_state": [
            [hexed(key), hexed(value)] for key, value in judging.parent.state.top_entries()
        ],
        "relay": {
            "number": relay_parent,
            "storage_root": None if root is None else hexed(root),
            "slot_now": judging.slot_now,
        },
        "candidate": hexed(raw),
    }


def compare_verifiers(
    judge: Judge,
    cases: int,
    seed: str,
    strategies: Sequence[str] | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    *,
    first: Iterable[Case] = (),
    stop: Callable[[], bool] = lambda: False,
    rules: Rules = SHIPPED,
) -> VerifierComparison:
    """Let our verifier and `judge` judge `cases` cases. They are the same for the same seed.

    Our verifier and the worlds have `rules`. The blocks of the cases in `first` are judged before
    others and are counted. If `stop` returns true, the comparison ends after the cases of the
    present block. Raises `UnknownStrategy`, and the errors of `judge`.
    """
    run = _Run(judge, cases, seed, strategies=strategies)
    for case in first:
        run.kept(case)
    number = 0
    while run.result.cases < cases and not stop():
        seed_of_world = Draws(run.seed, f"verifier/world/{number}").take(32)
        world = World(seed_of_world, proofs_only=False, rules=rules)
        for block in range(BLOCKS_A_WORLD):
            run.situation(world.situation(), f"{number}/{block}")
            if on_progress is not None:
                on_progress(run.result.cases, cases)
            if stop():
                break
            world.advance()
        number += 1
    return run.result


def keep(comparison: VerifierComparison, folder: Path) -> list[Path]:
    """Write the smallest difference of each group into `folder` and return the files."""
    files = []
    for group, group_differences in sorted(comparison.differences.items()):
        smallest = min((difference.to_json() for difference in group_differences), key=len)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"difference-{blake2_256(group.encode()).hex()[:12]}.json"
        path.write_text(smallest, encoding="utf-8")
        files.append(path)
    return files
