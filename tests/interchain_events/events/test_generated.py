"""The generated protobuf modules are what the compiler makes of their sources."""

from pathlib import Path

from support.plumbing.protobuf import ROOT, generate


def test_the_protobuf_modules_are_those_of_their_sources(tmp_path: Path) -> None:
    made = generate(tmp_path)
    assert made
    for path in made:
        committed = ROOT / path.relative_to(tmp_path)
        assert _without_version(path) == _without_version(committed), (
            f"{committed.name}: run protocol.generate again"
        )


def _without_version(path: Path) -> list[str]:
    """The compiler writes its version down, which may be newer here than where the module was
    made.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    return [
        line for line in lines if "Version" not in line and not line.strip().rstrip(",").isdecimal()
    ]
