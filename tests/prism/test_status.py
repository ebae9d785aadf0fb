"""PR-60 and PR-62 on the branch alone."""

from pubsub_emulator.prism.core.errors import Reason
from pubsub_emulator.prism.core.status import BestBlock, Branch, Known, OperationStatus, Place

NAME = bytes(32)


def block(number: int, branch: int, *names: bytes) -> BestBlock:
    made = bytes((branch, number)) * 16
    return BestBlock(number, made, {name: Place(number, made, 0, at, 0) for at, name in enumerate(names)})


def test_pr_62_an_operation_that_comes_back_in_a_block_that_is_processed_at_once_is_no_longer_pending() -> None:
    branch = Branch()
    branch.go_to(0, [block(1, 0, NAME)], 1, processed=0)
    assert branch.go_to(0, [block(1, 1, NAME)], 1, processed=1) == set()
    known = Known(rejected=(Place(1, bytes(32), 0, 0, 0), Reason.UNKNOWN_DID))
    found = branch.status(NAME, known)
    assert found is not None
    assert found.status is OperationStatus.REJECTED


def test_pr_62_an_operation_whose_block_left_the_branch_is_pending_until_it_is_given_up() -> None:
    branch = Branch()
    branch.go_to(0, [block(1, 0, NAME)], 1, processed=0)
    assert branch.go_to(0, [block(1, 1)], 1, processed=0) == {NAME}
    found = branch.status(NAME, Known())
    assert found is not None
    assert found.status is OperationStatus.PENDING
    branch.go_to(1, [block(2, 1), block(3, 1)], 3, processed=0)
    branch.give_up(2)
    assert branch.status(NAME, Known()) is None
