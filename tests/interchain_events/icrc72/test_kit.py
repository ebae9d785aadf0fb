"""The kit's rules and words: levels, places in the drafts, causes, ranges, Candid's text form."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.icrc72.wrong_roles import ROLES, WRONG, asked

from interchain_events.cli.commands.icrc72.conform import _result
from interchain_events.icrc72.cheats.stage import Actor
from interchain_events.icrc72.conformance.members import judge_inbox
from interchain_events.icrc72.conformance.probes import Book, Verdict, fake
from interchain_events.icrc72.conformance.publishers import try_publisher
from interchain_events.icrc72.conformance.rules import CAUSES, EXTENSIONS, LEVELS, rules_of
from interchain_events.icrc72.conformance.subscribers import try_subscriber
from interchain_events.icrc72.conformance.trial import Candidate
from interchain_events.icrc72.conformance.wording import (
    LONGEST,
    candid_text,
    difference,
    misfit,
    ranges,
)
from interchain_events.icrc72.ic.candid.did import parse_types
from interchain_events.icrc72.ic.candid.encode import Encoder
from interchain_events.icrc72.ic.candid.types import Variant
from interchain_events.icrc72.ic.messaging import Happening
from interchain_events.icrc72.ic.network import CanisterNetwork
from interchain_events.icrc72.ic.principal import ANONYMOUS, Principal
from interchain_events.icrc72.keys import FILTER, SKIP
from interchain_events.icrc72.messages import GenericError
from interchain_events.icrc72.methods import HANDLE

NAME = "trial.events"


def publish(network: CanisterNetwork, who: Principal, number: int) -> None:
    network.submit(ANONYMOUS, who, NAME, b"%d" % number)


def handled(network: CanisterNetwork, who: Principal) -> list[int]:
    return list(network.canister(who).data)  # type: ignore[attr-defined]  # an `Actor`


@pytest.mark.parametrize("name", ROLES)
def test_each_rule_has_a_level_and_its_place_in_a_draft(name: str) -> None:
    rules = rules_of(name)
    claimed = rules_of(name, tuple(EXTENSIONS))
    for number, rule in rules.items():
        assert rule.level in LEVELS
        assert rule.place.startswith(("ICRC-72, ", "ICRC-77, "))
        assert rule.text
        assert (rule.level == "extension") == number.startswith("RP-")
        wanted = "required" if rule.level == "extension" else rule.level
        assert claimed[number] == rule._replace(level=wanted)


def test_every_cause_is_a_rule() -> None:
    every = {number for name in ROLES for number in rules_of(name)}
    assert {*CAUSES, *(cause for causes in CAUSES.values() for cause in causes)} <= every


def subscriber(*wrong: Any, **config: Any) -> Any:
    """Make a subscriber without some of what it does."""

    def make(me: Principal) -> Any:
        app: Any = Actor(me, publications={}, subscriptions={NAME: config})
        for each in wrong:
            each(app)
        return app

    return make


def levels(make: Any, *, with_: tuple[str, ...] = ()) -> tuple[set[str], set[str]]:
    """The required rules that are broken, and the others."""
    trial = try_subscriber(Candidate(make, handled=handled), with_=with_)
    broken = [each for each in trial.book.verdicts if each.broken]
    required = {each.rule for each in broken if each.level == "required"}
    return required, {each.rule for each in broken} - required


def test_a_subscriber_without_replay_and_statistics_is_correct() -> None:
    no_replays = asked("icrc77_register_replay", lambda *_: None)
    no_stats = WRONG["subscriber: tells no statistics"][0]
    required, others = levels(subscriber(no_replays))
    assert (required, others) == (set(), {"RP-10"})
    required, others = levels(no_stats)
    assert (required, others) == (set(), {"IC-35d"})
    required, _ = levels(subscriber(no_replays), with_=("icrc77",))
    assert required == {"RP-10"}
    # Who asks for replays claims to support them, and has to ask for the right events.
    required, _ = levels(WRONG["subscriber: asks for the wrong events"][0])
    assert "RP-10" in required


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(
            {SKIP: [3, 1]},
            id="skip",
        ),
        pytest.param(
            {FILTER: "n < 5"},
            id="filter",
        ),
    ],
)
def test_only_events_that_pass_the_candidates_own_filter_and_skip_are_due(
    config: dict[str, Any],
) -> None:
    assert levels(subscriber(**config))[0] == set()


def test_a_canister_that_registers_on_a_call_is_called() -> None:
    def idle(me: Principal) -> Any:
        app = subscriber()(me)
        app.idle = True
        honest = app.subscriber._asking.register
        app.subscriber._asking.register = lambda *given: None if app.idle else honest(*given)
        return app

    def register(network: CanisterNetwork, who: Principal) -> None:
        network.canister(who).idle = False  # type: ignore[attr-defined]

    def broken(**more: Any) -> list[str]:
        trial = try_subscriber(Candidate(idle, **more))
        return [each.rule for each in trial.book.verdicts if each.broken]

    assert "IC-39 subscription" in broken()
    assert "IC-39 subscription" not in broken(register=register)


def test_the_handled_events_of_a_publisher_are_not_judged() -> None:
    """A canister of both roles may be tried as a publisher with its query for handled events."""
    made = Candidate(ROLES["publisher"], publish=publish, handled=lambda _network, _who: [1])
    trial = try_publisher(made, further=False)
    assert [each for each in trial.book.verdicts if each.broken] == []


def test_ic_44_a_notification_may_be_confirmed_after_the_trial_ends() -> None:
    trial = try_subscriber(Candidate(ROLES["subscriber"], handled=handled))
    broadcaster = next(
        each for each in trial.system.broadcasters if each in trial.network.running()
    )
    note = fake(10**6, NAME, broadcaster)
    for age, is_broken in ((0, False), (10, False), (30, True)):
        happening = Happening(
            trial.network.round - age,
            "execute",
            10**6,
            sender=broadcaster,
            receiver=trial.who,
            method=HANDLE.name,
            data=HANDLE.argument((note,)),
        )
        trial.recorder.happenings.append(happening)
        trial.book = Book("publisher")
        judge_inbox(trial, "publisher", ANONYMOUS)
        (verdict,) = [each for each in trial.book.verdicts if each.rule == "IC-44"]
        assert any("1000000" in words for words in verdict.broken) == is_broken
        trial.recorder.happenings.remove(happening)


# Words


def test_numbers_are_ranges() -> None:
    assert ranges([]) == "none"
    assert ranges([3, 1, 2, 2, 7]) == "1 to 3, 7"
    assert ranges([2**20_000]) == "a number of 20,001 bits"
    assert ranges(range(0, 40, 2)).endswith("14 and 12 more ranges")


@given(st.lists(st.integers(0, 30)), st.lists(st.integers(0, 30), min_size=1))
def test_a_difference_names_what_is_missing_and_what_is_not_due(
    found: list[int], due: list[int]
) -> None:
    words = difference(found, due)
    assert ("missing" in words) == bool({*due} - {*found})
    assert ("not due" in words) == bool({*found} - {*due})
    assert ("more than once" in words) == (len(found) > len({*found}))


def test_values_are_in_the_text_form_of_candid() -> None:
    error = Variant("Err", Variant("GenericError", GenericError(3, 'a "quota"')))
    assert candid_text(error) == (
        "variant { Err = variant { GenericError = record { error_code = 3;"
        ' message = "a \\"quota\\"" } } }'
    )
    assert candid_text((None, True, b"\0a", ANONYMOUS, 1.5)) == (
        'vec { null; true; blob "\\00\\61"; principal "2vxsx-fae"; 1.5 }'
    )
    assert candid_text(()) == "vec {}"
    assert candid_text(2**20_000) == "a number of 20,001 bits"
    assert len(candid_text(("x" * 10**6,) * 10**4)) == LONGEST + 1


@pytest.mark.parametrize(
    ("given_", "wanted", "words"),
    [
        ("(vec text)", "(vec nat)", "in the items: text instead of nat"),
        ("(nat)", "(nat)", ""),
        ("()", "(nat)", "0 arguments instead of 1"),
        ("()", "(opt nat)", ""),
        ("(record { a : text })", "(record { a : nat })", "in a: text instead of nat"),
        ("(record {})", "(record { a : nat })", "no field a"),
        ("(variant { a : vec nat8 })", "(variant { a : nat })", "in a: blob instead of nat"),
        ("(nat)", "(record {})", "nat instead of a record"),
        ("(opt text)", "(vec nat)", "opt text instead of vec nat"),
    ],
)
def test_a_misfit_of_types_is_named_with_its_place(given_: str, wanted: str, words: str) -> None:
    values: dict[str, Any] = {
        "(vec text)": ((),),
        "(nat)": (1,),
        "()": (),
        "(record { a : text })": (("",),),
        "(record {})": ((),),
        "(variant { a : vec nat8 })": (Variant("a", b""),),
        "(opt text)": (None,),
    }
    data = Encoder(parse_types(given_)).encode(*values[given_])
    assert misfit(data, parse_types(wanted)) == words
    assert misfit(data[:3], parse_types(wanted)) == ""


def test_an_argument_that_cannot_be_read_has_its_round_method_and_byte() -> None:
    make, *_ = WRONG["subscriber: confirms with texts"]
    trial = try_subscriber(Candidate(make, handled=handled))
    verdicts = {each.rule: each for each in trial.book.verdicts}
    (words,) = verdicts["IC-11"].broken
    assert re.fullmatch(
        r"round \d+: icrc72_confirm_notifications: byte \d+: .*: in the items: text instead of nat,"
        r" and \d+ more calls",
        words,
    )
    assert verdicts["IC-44"].cause == "IC-11"
    assert all("notifications 1 to " in each for each in verdicts["IC-44"].broken)


# The command


def verdict(rule: str, broken: tuple[str, ...], level: str, cause: str = "") -> Verdict:
    return Verdict(rule, "about", 1, broken, level, cause)


def test_only_a_required_rule_makes_the_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    lacks = [
        verdict("IC-35d", ("why",), "recommended"),
        verdict("RP-10", ("why",), "extension"),
        verdict("I1", (), "required"),
    ]

    def tell(level: str, *more: Verdict) -> tuple[int, str]:
        result = _result("subscriber", [*lacks, *more], "not met", {}, with_=(), level=level)
        return result.code, capsys.readouterr().out

    code, shown = tell("extension")
    assert code == 0
    assert shown.count("lacks") == 2
    assert "ICRC-77, Replay Life Cycle, 1: Subscriber registers a replay" in shown
    assert shown.splitlines()[-1] == (
        "subscriber: 1 of 1 required rules hold; 0 of 1 recommended; 0 of 1 rules of extensions"
    )
    assert "RP-10" not in tell("recommended")[1]
    assert "IC-35d" not in tell("required")[1]
    code, shown = tell("required", verdict("IC-44", ("why",), "required", "IC-4"))
    assert code == 1
    assert "This follows from IC-4." in shown
