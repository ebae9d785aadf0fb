"""The status of an operation on the best branch, without a chain or tables (PR-60 to PR-62)."""

import pytest
from support.prism.wallet import Wallet

from interchain_events.prism.core.errors import Reason
from interchain_events.prism.core.identifiers import sha256
from interchain_events.prism.core.status import (
    BestBlock,
    Branch,
    OperationPlace,
    OperationState,
    OperationStatus,
    StatusUpdate,
    best_block,
)
from interchain_events.prism.make import atala_object

A, B, C = (bytes((value,)) * 32 for value in range(3))
"""The ids of operations."""


def place(number: int, branch: str = "a") -> OperationPlace:
    """The place of an operation that is the first of the first object of its block."""
    return OperationPlace(number, sha256(f"{branch} {number}".encode()), 0, 0, time=number * 6_000)


def block(number: int, *operations: bytes, branch: str = "a") -> BestBlock:
    """A block with operations."""
    where = place(number, branch)
    return BestBlock(number, where.hash, dict.fromkeys(operations, where))


def on(*blocks: BestBlock, best: int) -> Branch:
    """A branch whose blocks have not been processed."""
    branch = Branch()
    branch.go_to(0, blocks, best, processed=0)
    return branch


APPLIED = OperationState(applied=place(1))
REJECTED = OperationState(rejected=(place(1), Reason.UNKNOWN_DID))


@pytest.mark.parametrize(
    ("known", "wanted"),
    [
        (APPLIED, StatusUpdate(OperationStatus.APPROVED, place=place(1))),
        (
            REJECTED,
            StatusUpdate(OperationStatus.REJECTED, reason=Reason.UNKNOWN_DID, place=place(1)),
        ),
        (OperationState(is_received=True), StatusUpdate(OperationStatus.PENDING)),
        (OperationState(is_cancelled=True), StatusUpdate(OperationStatus.CANCELLED)),
        (OperationState(), None),
        (APPLIED._replace(rejected=(place(2), Reason.UNKNOWN_DID)), OperationStatus.APPROVED),
        (REJECTED._replace(is_received=True), OperationStatus.PENDING),
        (REJECTED._replace(is_cancelled=True), OperationStatus.REJECTED),
    ],
)
def test_pr_60_rows_alone_decide_beside_a_branch_without_it(
    known: OperationState, wanted: StatusUpdate | OperationStatus | None
) -> None:
    """The client is told where a decided operation is, and why it was rejected."""
    found = on(block(2, B), best=2).status(A, known)
    if isinstance(wanted, OperationStatus):
        assert found is not None
        assert found.status is wanted
    else:
        assert found == wanted


@pytest.mark.parametrize("known", [OperationState(), REJECTED, OperationState(is_received=True)])
def test_pr_60_an_unprocessed_block_decides_unless_the_operation_was_applied(
    known: OperationState,
) -> None:
    """The level counts the blocks above the operation's block."""
    in_block = StatusUpdate(OperationStatus.IN_BLOCK, place=place(2))
    above = StatusUpdate(OperationStatus.CONFIRMATION_LEVEL, 1, place=place(2))
    assert on(block(2, A), best=2).status(A, known) == in_block
    assert on(block(2, A), block(3), best=3).status(A, known) == above
    assert on(block(2, A), best=3).status(A, APPLIED) == StatusUpdate(
        OperationStatus.APPROVED, place=place(1)
    )


def test_pr_60_a_block_above_the_best_one_has_no_negative_level() -> None:
    """The chain became shorter, and the branch has not followed it yet."""
    found = on(block(5, A), best=3).status(A, OperationState())
    assert found == StatusUpdate(OperationStatus.IN_BLOCK, place=place(5))


def test_pr_60_the_first_of_several_blocks_with_an_operation_counts() -> None:
    """A block that was missing may be before the known ones."""
    branch = on(block(3, A), best=3)
    assert branch.go_to(3, [block(2, A), block(4, A)], 4, processed=1) == set()
    assert [each.number for each in branch.blocks] == [2, 3, 4]
    assert branch.place(A) == place(2)
    assert branch.place(B) is None
    assert branch.hash_at(4) == place(4).hash
    assert branch.hash_at(1) is None


def test_pr_60_blocks_that_were_processed_are_dropped() -> None:
    branch = on(block(1, A), block(2, B), best=2)
    assert branch.go_to(2, [block(3, C)], 3, processed=2) == set()
    assert [each.number for each in branch.blocks] == [3]
    assert branch.number == 3
    assert branch.place(B) is None


def test_pr_62_operations_of_blocks_that_left_are_pending_until_they_return() -> None:
    """Only operations that are in no block of the new branch have left."""
    branch = on(block(1, A), block(2, B), block(3, B, C), best=3)
    assert branch.go_to(1, [block(2, C, branch="b")], 2, processed=0) == {B}
    assert branch.out_of_blocks == {B: 2}
    assert branch.status(B, OperationState()) == StatusUpdate(OperationStatus.PENDING)
    assert branch.status(C, OperationState()) == StatusUpdate(
        OperationStatus.IN_BLOCK, place=place(2, "b")
    )
    assert branch.go_to(1, [block(2, branch="c")], 4, processed=0) == {C}
    assert branch.out_of_blocks == {B: 2, C: 4}
    assert branch.go_to(2, [block(3, B, branch="c")], 3, processed=3) == set()
    assert branch.out_of_blocks == {C: 4}


@pytest.mark.parametrize(("best", "is_pending"), [(4, True), (5, False)])
def test_pr_62_an_operation_is_given_up_after_enough_blocks(best: int, is_pending: bool) -> None:
    branch = on(block(2, A), best=2)
    branch.go_to(1, [], 2, processed=0)
    branch.go_to(2, [], best, processed=0)
    branch.give_up(3)
    assert (branch.status(A, OperationState()) is not None) is is_pending


def test_each_change_of_a_branch_changes_its_version() -> None:
    """Rows that were read before must be read again."""
    branch = Branch()
    versions = [branch.version]
    for _ in range(2):
        branch.go_to(0, [], 0, processed=0)
        versions.append(branch.version)
        branch.give_up(1)
        versions.append(branch.version)
    assert len({*versions}) == len(versions)


def test_pr_61_a_block_has_the_first_place_of_each_operation() -> None:
    """Objects that cannot be read count, too: places are those of the block's objects."""
    a, b = Wallet("a").created, Wallet("b").created
    objects = [b"\xff", atala_object([a.raw, b.raw]), atala_object([b.raw, a.raw])]
    found = best_block(7, A, 42, objects)
    assert (found.number, found.hash) == (7, A)
    assert found.operations == {
        a.id: OperationPlace(7, A, object_index=1, operation_index=0, time=42),
        b.id: OperationPlace(7, A, object_index=1, operation_index=1, time=42),
    }
