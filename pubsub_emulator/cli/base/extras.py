"""The extras of optional packages, and the command that installs an extra."""

import sys
from functools import cache
from typing import Final

NAME: Final = "pubsub-emulator"

EXTRAS: Final = {
    "pyarrow": "audit",
    **dict.fromkeys(("pandas", "pyspark"), "spark"),
    "aiohttp": "node",
    "coincurve": "prism",
    "duckdb": "sql",
    **dict.fromkeys(("wasmtime", "cbor2", "py_arkworks_bls12381"), "canisters"),
    **dict.fromkeys(("grpc", "google", "google.protobuf", "psycopg", "psycopg_pool"), "events"),
    **dict.fromkeys(("jwt", "redis"), "distributor"),
    **dict.fromkeys(("eth_abi", "rlp"), "evm"),
    **dict.fromkeys(("altair", "vl_convert", "jinja2", "markupsafe"), "plot"),
    **dict.fromkeys(("pytest", "hypothesis"), "testing"),
}
"""The extra of a package, by the package's import name."""


def brings(extra: str) -> str:
    """The end of an error about a missing package: the command that installs `extra`."""
    return f"which `{install_command(extra)}` brings"


@cache
def install_command(extra: str) -> str:
    """A shell command that adds `extra` to this installation.

    A checkout and a wheel are installed again from the place that they came from; what came from a package index is
    named by its name.
    """
    import shlex  # only an error about a missing package needs it, and what is imported with it and below
    from pathlib import Path
    from urllib.parse import unquote, urlsplit

    python = shlex.quote(sys.executable or "python3")
    checkout = Path(__file__).resolve().parents[3]
    if (checkout / "pyproject.toml").is_file():  # what runs from its sources goes on to
        return f"{python} -m pip install --editable {shlex.quote(f'{checkout}[{extra}]')}"
    url = _origin()
    place = urlsplit(url)
    named = f"{unquote(place.path) if place.scheme == 'file' else NAME}[{extra}]"
    if url and place.scheme != "file":
        named += f" @ {url}"
    return f"{python} -m pip install {shlex.quote(named)}"


def _origin() -> str:
    """The source of this installation (PEP 610); empty if it is an index or unknown."""
    import json
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        origin = distribution(NAME).read_text("direct_url.json")
        found = json.loads(origin) if origin else {}
    except (PackageNotFoundError, ValueError):
        return ""
    if not isinstance(found, dict) or not isinstance(found.get("url"), str):
        return ""
    control = found.get("vcs_info")
    if isinstance(control, dict) and isinstance(control.get("vcs"), str):
        at = control.get("commit_id")
        return f"{control['vcs']}+{found['url']}" + (f"@{at}" if isinstance(at, str) else "")
    return str(found["url"])
