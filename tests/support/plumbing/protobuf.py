"""Makes the protobuf modules from their sources: `python tests/support/plumbing/protobuf.py`,
with the group `test`.

The services themselves are written by hand over `grpc.aio`, typed, so no stubs are generated.
"""

from importlib import import_module
from pathlib import Path
from typing import Final

SOURCES: Final = (
    "interchain_events/events/protocol/events.proto",
    "interchain_events/prism/protocol/prism.proto",
)
"""Relative to the repository; each becomes `<name>_pb2.py` and `<name>_pb2.pyi` beside it."""

ROOT: Final = Path(__file__).absolute().parents[3]


def generate(out: Path, sources: tuple[str, ...] = SOURCES) -> list[Path]:
    """Write the modules below `out`, by their place in the repository.

    Raises `RuntimeError` when the compiler fails.
    """
    protoc = import_module("grpc_tools.protoc")
    made: list[Path] = []
    for name in sources:
        arguments = [
            f"-I{Path(name).parent}={ROOT / Path(name).parent}",
            f"--python_out={out}",
            f"--pyi_out={out}",
            name,
        ]
        if protoc.main(["protoc", *arguments]):
            raise RuntimeError(f"protoc refused {name}")
        made += [out / name.replace(".proto", f"_pb2.{ending}") for ending in ("py", "pyi")]
    return made


if __name__ == "__main__":
    generate(ROOT)
