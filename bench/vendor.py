"""Fetch the libraries of the live page from npm, check them, and write them into the package.

    python bench/vendor.py          write pubsub_emulator/pages/assets/vendor
    python bench/vendor.py --check  fail if its files are not those that would be written

A package must have the pinned hash, so it does not matter who served it. Its code is not run. Only
the names by which modules import each other are changed to file names, since a page without an
import map does not know package names.
"""

import argparse
import base64
import hashlib
import io
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

TARGET = Path(__file__).parents[1] / "pubsub_emulator" / "pages" / "assets" / "vendor"
PACKAGES = {
    "preact@10.29.8": (
        "sha512-ej2aVZ+vZ8WO7tvlQWRM9N63A0KzF9q4mWJfDUHgYaIofWY9hu74QdnQrjoPMmZi2/nZ5gN0bJCQF49xQqx09Q==",
        {
            "dist/preact.module.js": "preact.js",
            "hooks/dist/hooks.module.js": "hooks.js",
            "LICENSE": "preact.LICENSE",
        },
    ),
    "@preact/signals-core@1.14.5": (
        "sha512-vcRv7Ityz5JVmeiVqIluLFzT/PDS/AlhHUpw3/aUWqcVUs6bDGIPXE/6RSC4evBNWYvnniozg5Syfj33al3gkg==",
        {"dist/signals-core.module.js": "signals-core.js", "LICENSE": "signals-core.LICENSE"},
    ),
    "@preact/signals@2.11.4": (
        "sha512-Rb+5RPo9gWSaHtzJeauhHxiC8KP/IF2DEPkHPEOGOnuy2wnJzRqyeLRankUCYd6ADqtxS6GnWGv6Ie343d8aYw==",
        {"dist/signals.module.js": "signals.js", "LICENSE": "signals.LICENSE"},
    ),
    "htm@3.1.1": (
        "sha512-983Vyg8NwUE7JkZ6NmOqpCZ+sh1bKv2iYTlUkzlWmA5JD2acKoxd4KVxbMmxX/85mtfdnDmTFoNKcg5DGAvxNQ==",
        {"dist/htm.module.js": "htm.js", "LICENSE": "htm.LICENSE"},
    ),
    "uplot@1.6.32": (
        "sha512-KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw==",
        {
            "dist/uPlot.esm.js": "uplot.js",
            "dist/uPlot.min.css": "uplot.css",
            "LICENSE": "uplot.LICENSE",
        },
    ),
}
_NAMES = {
    "preact": "preact.js",
    "preact/hooks": "hooks.js",
    "@preact/signals-core": "signals-core.js",
}


def vendored() -> dict[str, bytes]:
    """Download the packages, and return their files by name, with a README that lists them.

    Raises `SystemExit` if a package has another hash or lacks a file.
    """
    out: dict[str, bytes] = {}
    rows = []
    for package, (integrity, files) in PACKAGES.items():
        data = _packed(package)
        digest = "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()
        if digest != integrity:
            sys.exit(f"{package} is not the pinned package: its hash is {digest}")
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for inside, name in files.items():
                member = archive.extractfile(f"package/{inside}")
                if member is None:
                    sys.exit(f"{package} has no file {inside}")
                out[name] = _named_by_file(member.read())
                rows.append(f"| {name} | {package} | {hashlib.sha256(out[name]).hexdigest()} |")
    out["README.md"] = "\n".join((*_HEAD, *rows, "")).encode()
    return out


_HEAD = (
    "# Libraries of the live page",
    "",
    (
        "From npm, by `python bench/vendor.py`, which pins each package by its integrity. Modules"
        " name each other by file;"
    ),
    "nothing else is changed.",
    "",
    "| file | package | SHA-256 |",
    "|---|---|---|",
)


def _named_by_file(content: bytes) -> bytes:
    text = content.decode()
    for name, file in _NAMES.items():
        text = text.replace(f'from"{name}"', f'from"./{file}"')
    lines = (line for line in text.splitlines() if not line.startswith("//# sourceMappingURL"))
    return ("\n".join(line.rstrip() for line in lines) + "\n").encode()


def _packed(package: str) -> bytes:
    with TemporaryDirectory() as folder:
        command = [
            "npm",
            "pack",
            package,
            f"--pack-destination={folder}",
            "--ignore-scripts",
            "--silent",
        ]
        subprocess.run(command, check=True, capture_output=True, cwd=folder)  # noqa: S603  # package names of this file
        return next(Path(folder).glob("*.tgz")).read_bytes()


def _is(path: Path, data: bytes) -> bool:
    return path.exists() and path.read_bytes() == data


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument(
        "--check", action="store_true", help="Write nothing; fail where a file differs."
    )
    check = arguments.parse_args().check
    files = vendored()
    differing = [name for name, data in files.items() if not _is(TARGET / name, data)]
    if check and differing:
        sys.exit(f"not what npm has: {', '.join(differing)}")
    TARGET.mkdir(exist_ok=True)
    for name in differing:
        (TARGET / name).write_bytes(files[name])
