"""The plugin in runs of its own: what a failing test is shown, what is refused, and what it costs
when unused.
"""

from importlib import import_module

import pytest

pytest_plugins = ["pytester"]

# Loaded once and here: a run within a test forgets the modules that it was the first to load.
LOADED = [
    import_module(f"pubsub_emulator.testing.{name}") for name in ("actors", "failure", "networks")
]

STRICT = (
    *("--strict-markers", "--strict-config", "-W", "error"),
    *("-p", "no:cacheprovider", "-p", "no:schemathesis"),
)

SCENARIO = """
name = "small"
seed = "small"
relay_blocks = 6

[[publishers]]
paras = [1000]
keys = 2

[[subscribers]]
para = 2000
subscribe = [{ publishers = "all" }]
"""

FAILING = """
    from pubsub_emulator.primitives.pubsub import key_from_data

    def test_fails(pubsub_network):
        pubsub_network.publish(1000, key_from_data(b"key"), b"7.42", ttl=9)
        pubsub_network.step(3)
        assert False, "on purpose"
"""


def test_a_failing_test_is_shown_the_last_blocks_and_what_they_changed(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(FAILING)
    result = pytester.runpytest_inprocess(*STRICT)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*on purpose*",
            "*- pubsub network: last blocks -*",
            "relay block 3, state root 0x*",
            "parachain 2000 block 3, in relay block 3 on 2: valid",
            "  budget 8,912,892, used *, messages 4, static keys *",
            "  proof * in * nodes, own state * (of it cache *",
            "  para  unchanged  complete  top_path_bytes  child_node_bytes *",
            "  1000         no       yes *",
            "  delivered 1000 0x*: 0x372e3432, ValidFor(blocks=9)",
            "parachain 1000 block 1, in relay block 1 on 0: valid",
            "*- pubsub network: state diff -*",
            "relay block 2 → 3",
            "  Paras.Heads[[]0x*",
            "parachain 2000 block 2 → 3",
            "  Subscriber.LastDelivered*: nothing → 0x*",
        ],
        consecutive=False,
    )


def test_a_refused_block_is_shown_with_its_verdict_and_cheat(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        def test_fails(pubsub_network, pubsub_cheats):
            pubsub_cheats.bribe(2000, 0, "no-seal")
            pubsub_cheats.bribe(2000, 1, "no-seal")
            pubsub_network.step(2)
            raise ValueError
        """)
    result = pytester.runpytest_inprocess(*STRICT)
    result.stdout.fnmatch_lines(
        [
            "parachain 2000 block 1, in relay block 2 on 1: REFUSED, by the cheat no-seal",
            "  BadSeal: *",
        ]
    )


def test_what_a_child_trie_changed_is_shown_by_key(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        from pubsub_emulator.primitives.pubsub import key_from_data

        def test_fails(pubsub_network):
            pubsub_network.publish(1000, key_from_data(b"key"), b"7.42")
            pubsub_network.step(2)
            assert False
        """)
    result = pytester.runpytest_inprocess(*STRICT)
    result.stdout.fnmatch_lines(
        [
            "  Broadcaster::DataPublished(publisher=1000, key=0x*, value_size=4)",
            "relay block 1 → 2",
            "  root of child trie 1000: nothing → 0x*",
            "  child trie 1000, 0x*: nothing → 0x10372e3432*",
        ]
    )


def test_a_test_that_passes_or_makes_no_block_is_shown_nothing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        def test_passes(pubsub_network):
            pubsub_network.step(2)

        def test_fails_at_once(pubsub_network):
            assert False
        """)
    result = pytester.runpytest_inprocess(*STRICT, "-p", "no:randomly", "-rA")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.no_fnmatch_line("*pubsub network*")


def test_a_network_that_the_test_broke_does_not_cost_its_report(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        def test_fails(pubsub_network):
            pubsub_network.step(2)
            pubsub_network.relay.blocks.clear()
            assert False, "on purpose"
        """)
    result = pytester.runpytest_inprocess(*STRICT)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*on purpose*", "cannot be shown: IndexError: *"])


def test_a_test_is_shown_only_its_own_networks(pytester: pytest.Pytester) -> None:
    """Not those that made what it starts from, nor those of the test before."""
    pytester.makepyfile("""
        import pytest

        @pytest.fixture(scope="module")
        def later(pubsub_networks, pubsub_base):
            network = pubsub_base.fork()
            network.step(5)
            return pubsub_networks.freeze(network, "later")

        def test_fails_first(later):
            later.fork().step(2)
            assert False

        def test_passes(pubsub_network):
            pubsub_network.step(3)

        def test_fails_last(later):
            later.fork().step(3)
            assert False
        """)
    result = pytester.runpytest_inprocess(*STRICT, "-p", "no:randomly")
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(
        [
            "*- pubsub later: last blocks -*",
            "relay block 7, *",
            "*- pubsub later: last blocks -*",
            "relay block 8, *",
        ]
    )
    result.stdout.no_fnmatch_line("*pubsub network: *")


def test_a_scenario_is_found_beside_the_test_and_below_the_root(pytester: pytest.Pytester) -> None:
    pytester.makefile(".toml", small=SCENARIO)
    pytester.mkdir("shared").joinpath("shared.toml").write_text(
        SCENARIO.replace('"small"', '"shared"')
    )
    pytester.makepyfile("""
        import pytest

        @pytest.mark.pubsub_scenario("small.toml")
        def test_at_its_end(pubsub_simulation):
            assert pubsub_simulation.scenario.name == "small"
            assert pubsub_simulation.network.number == 6

        @pytest.mark.pubsub_scenario("shared/shared.toml", blocks=2)
        def test_on_its_way(pubsub_simulation):
            assert pubsub_simulation.scenario.name == "shared"
            assert pubsub_simulation.network.number == 2
        """)
    pytester.runpytest_inprocess(*STRICT).assert_outcomes(passed=2)


@pytest.mark.parametrize(
    ("marker", "said"),
    [
        ('"missing.toml"', "*missing.toml: No such file or directory"),
        ('"missing"', "missing: no such scenario; known: *demo, *"),
        ('"small.toml"', "*small.toml:3: relay_blocks: *"),
    ],
)
def test_a_scenario_that_cannot_be_read_is_one_line(
    pytester: pytest.Pytester, marker: str, said: str
) -> None:
    pytester.makefile(".toml", small=SCENARIO.replace("= 6", "= 0"))
    pytester.makepyfile(f"""
        import pytest

        @pytest.mark.pubsub_scenario({marker})
        def test_never_runs(pubsub_network):
            pass
        """)
    result = pytester.runpytest_inprocess(*STRICT)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["_* ERROR at setup of test_never_runs _*", said, "=*"], consecutive=True
    )


def test_a_base_that_tests_would_share_is_refused(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import pytest

        @pytest.fixture(scope="module")
        def pubsub_base(pubsub_networks):
            return pubsub_networks.of([1000], {}).fork()

        def test_never_runs(pubsub_network):
            pass
        """)
    result = pytester.runpytest_inprocess(*STRICT)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["pubsub_base must be frozen, *"])


def test_a_simulation_without_a_scenario_is_refused(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_never_runs(pubsub_simulation): pass")
    result = pytester.runpytest_inprocess(*STRICT)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["pubsub_simulation needs @pytest.mark.pubsub_scenario(file, blocks=…)"]
    )


ISOLATED = """
    import pytest
    from pubsub_emulator.primitives.pubsub import key_from_data

    KEY = key_from_data(b"key")

    @pytest.fixture(scope="session")
    def pubsub_base(pubsub_networks):
        network = pubsub_networks.of([1000], {2000: {1000: [KEY]}}).fork()
        network.publish(1000, KEY, b"base")
        network.step(3)
        return pubsub_networks.freeze(network, "base")

    @pytest.mark.parametrize("at", range(4))
    def test_nobody_was_here(pubsub_network, pubsub_base, at):
        assert pubsub_network.number == 3
        assert pubsub_network.relay.state.top.get(b"mark") is None
        pubsub_network.publish(1000, KEY, b"%d" % at)
        [delivery] = pubsub_network.step(3)[-1].deliveries(2000)
        assert delivery.value == b"%d" % at
        for kept in pubsub_network.relay.blocks:
            kept.state.apply({b"mark": b"%d" % at}, {})
        assert pubsub_base.number == 3
"""


def test_no_test_sees_another_in_any_order(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(ISOLATED)
    pytester.runpytest_inprocess(*STRICT, "-p", "no:xdist", "--randomly-seed=2").assert_outcomes(
        passed=4
    )


def test_no_test_sees_another_in_any_process(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(ISOLATED, test_fails=FAILING)
    result = pytester.runpytest_subprocess(*STRICT, "-n", "2", "--assert=plain")
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(["*- pubsub network: last blocks -*"])


def test_a_run_that_uses_no_fixture_loads_nothing_of_the_emulator(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile("""
        import sys

        def test_nothing_is_loaded():
            assert "hypothesis" not in sys.modules
            assert sorted(name for name in sys.modules if name.startswith("pubsub_emulator")) == [
                "pubsub_emulator", "pubsub_emulator.lazy", "pubsub_emulator.moved",
                "pubsub_emulator.testing", "pubsub_emulator.testing.plugin",
                "pubsub_emulator.version",
            ]
        """)
    others = [
        word
        for plugin in ("randomly", "hypothesispytest", "schemathesis")
        for word in ("-p", f"no:{plugin}")
    ]
    pytester.runpytest_subprocess(*STRICT, *others).assert_outcomes(passed=1)
