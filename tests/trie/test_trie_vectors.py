"""Every vector of tries: roots, writes, proofs, child tries, tampered ones, and those of other implementations."""

from collections.abc import Callable

from support.tries import unhex, unhex_pairs, vectors
from support.vectors import each_case

from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.trie import Trie
from pubsub_emulator.trie.vectors import FORMATS


@each_case("trie*/**/*.json", FORMATS)
def test_a_vector_holds_ps1_ps2(check: Callable[[], None]) -> None:
    check()


def test_the_root_node_of_one_leaf_is_the_one_in_sp_tries_tests() -> None:
    vector = next(vector for vector in vectors("thirdparty/sp_trie_lib_rs") if "root_node_encoding" in vector)
    into: dict[Hash, bytes] = {}
    Trie.from_entries(unhex_pairs(vector["entries"])).prove([b""], into)
    assert list(into.values()) == [unhex(vector["root_node_encoding"])]
