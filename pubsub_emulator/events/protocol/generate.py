"""Makes the protobuf modules from their sources: `python -m pubsub_emulator.eventplane.protocol.generate`.

Needs grpcio-tools. The services themselves are written by hand over `grpc.aio`, typed, so no stubs are generated. A
test makes the modules again and compares.
"""

from importlib import import_module
from pathlib import Path
from typing import Final

SOURCES: Final = ("eventplane/protocol/events.proto", "eventplane/protocol/prism.proto")
"""Relative to the package; each becomes `<name>_pb2.py` and `<name>_pb2.pyi` beside it."""

ROOT: Final = Path(__file__).absolute().parents[2]


def generate(out: Path, sources: tuple[str, ...] = SOURCES) -> list[Path]:
    """Write the modules below `out`, by their place in the package. Raises `RuntimeError` when the compiler fails."""
    protoc = import_module("grpc_tools.protoc")
    made: list[Path] = []
    for source in sources:
        name = f"pubsub_emulator/{source}"
        folder = ROOT / Path(source).parent
        arguments = [f"-I{Path(name).parent}={folder}", f"--python_out={out}", f"--pyi_out={out}", name]
        if protoc.main(["protoc", *arguments]):
            raise RuntimeError(f"protoc refused {source}")
        made += [out / name.replace(".proto", f"_pb2.{ending}") for ending in ("py", "pyi")]
    return made


if __name__ == "__main__":
    generate(ROOT.parent)
