"""PR-40 to PR-42: the seven filters and their normal form."""

from hypothesis import given
from hypothesis import strategies as st

from pubsub_emulator.prism.core.errors import Reason
from pubsub_emulator.prism.core.filters import OWNERS, Filter, FilterType, matches, normal_form
from pubsub_emulator.prism.core.process import OperationType, Outcome, Status

SUFFIXES = st.sampled_from(["a" * 64, "b" * 64])
HASHES = st.sampled_from([b"\1" * 32, b"\2" * 32])
BATCHES = st.sampled_from(["c" * 64, "d" * 64])
STATUSES = st.sampled_from([None, Status.APPLIED, Status.REJECTED])


def _filter(kind: FilterType) -> st.SearchStrategy[Filter]:
    revokes = kind is FilterType.REVOKE_CREDENTIAL_FILTER
    return st.builds(
        Filter,
        st.just(kind),
        SUFFIXES if kind in OWNERS else st.none(),
        HASHES if revokes else st.none(),
        st.none() | BATCHES if revokes else st.none(),
        STATUSES,
    )


FILTERS = st.sampled_from(FilterType).flatmap(_filter)


@st.composite
def outcomes(draw: st.DrawFn) -> Outcome:
    kind = draw(st.sampled_from(OperationType))
    owner = draw(st.none() | SUFFIXES)
    is_create = kind is OperationType.CREATE_DID
    about_batches = kind in {OperationType.ISSUE_CREDENTIAL_BATCH, OperationType.REVOKE_CREDENTIALS}
    listed = draw(st.sets(HASHES)) if kind is OperationType.REVOKE_CREDENTIALS else set()
    return Outcome(
        b"",
        None,
        kind,
        draw(st.none() | st.just(Reason.UNKNOWN_KEY)),
        None if is_create else owner,
        owner if is_create else None,
        draw(BATCHES) if about_batches else None,
        tuple(sorted(listed)),
        b"",
    )


@given(st.lists(FILTERS, min_size=1, max_size=8), st.lists(outcomes(), max_size=10))
def test_pr_42_the_normal_form_matches_the_same_rows(filters: list[Filter], rows: list[Outcome]) -> None:
    normal = normal_form(filters)
    for row in rows:
        assert any(matches(each, row) for each in filters) is any(matches(each, row) for each in normal)


@given(st.lists(FILTERS, max_size=8), st.randoms(use_true_random=False))
def test_pr_42_order_and_repetition_mean_nothing(filters: list[Filter], draw: st.DataObject) -> None:
    mixed = filters * 2
    draw.shuffle(mixed)  # type: ignore[attr-defined]  # a Random
    assert normal_form(mixed) == normal_form(filters)
    assert normal_form(normal_form(filters)) == normal_form(filters)
    assert len(normal_form(filters)) <= 2 * len(filters)
