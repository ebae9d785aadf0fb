"""How this program reaches the workers of a cluster: its own packages in one archive; third-party ones are theirs.

Workers need Python with pyarrow, pycryptodome, scalecodec, sortedcontainers and xxhash. The archive holds sources only,
so it runs there whether or not the driver's packages are compiled.
"""

import os
import tempfile
import zipfile
from pathlib import Path
from typing import Final

PACKAGES: Final = ("primitives", "trie", "runtime", "xcm", "collator", "emulator", "spark_audit")
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)


def source_root() -> Path:
    """The directory that this program's packages stand in."""
    return Path(__file__).resolve().parents[2]


def build_archive(target: Path | None = None) -> Path:
    """A zip of the packages' sources, byte-identical for the same sources; in the temporary directory by default."""
    if target is None:
        handle, name = tempfile.mkstemp(prefix="pubsub-emulator-", suffix=".zip")
        os.close(handle)
        target = Path(name)
    root = source_root()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in PACKAGES:
            for path in sorted((root / package).rglob("*")):
                if path.suffix == ".py" and path.is_file():
                    member = zipfile.ZipInfo(path.relative_to(root).as_posix(), _EPOCH)
                    member.compress_type = zipfile.ZIP_DEFLATED
                    archive.writestr(member, path.read_bytes())
    return target
