"""PR-10 to PR-13, PR-20 to PR-25, PR-40 to PR-42: golden vectors, with DIDs, signatures and objects of mainnet."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
from support.prism import DOCUMENT

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.prism.vectors import FORMATS

CASES = list(FORMATS[0].cases(DOCUMENT))


@pytest.mark.parametrize("check", [check for _, check in CASES], ids=[name for name, _ in CASES])
def test_pr_11_to_pr_42_hold_on_a_vector(check: Callable[[], None]) -> None:
    check()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("long_form_dids", lambda case: case.update(well_formed=not case["well_formed"])),
        ("signatures", lambda case: case.update(message=case["message"] + "00")),
        ("objects", lambda case: case.update(atala_object_id="00" * 32)),
        ("histories", lambda case: case["operations"].pop()),
        ("histories", lambda case: case["state"]["dids"].popitem()),
        ("histories", lambda case: case["matches"][0]["seq_nos"].pop()),
        ("batches", lambda case: case.update(credential_hashes=["00" * 32])),
        ("merkle", lambda case: case.update(root="00" * 32)),
        ("normal_forms", lambda case: case["normal_form"].pop()),
    ],
)
def test_a_vector_that_states_otherwise_fails(name: str, change: Callable[[dict[str, Any]], object]) -> None:
    case = copy.deepcopy(DOCUMENT[name][0])
    change(case)
    ((_, check),) = FORMATS[0].cases({name: [case]})
    with pytest.raises(PubsubError):
        check()
