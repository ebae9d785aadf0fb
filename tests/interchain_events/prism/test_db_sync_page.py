"""docs/howto/prism-on-db-sync.md, done as it says: from an empty PostgreSQL to a streamed
status.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

from support.plumbing.processes import ROOT, environment, program

from interchain_events.prism.service.db_sync import DEPTH, SCHEMAS

PAGE = (ROOT / "docs" / "howto" / "prism-on-db-sync.md").read_text(encoding="utf-8")
URL = "postgresql://postgres@127.0.0.1/cexplorer"


def test_the_page_leads_from_an_empty_database_to_a_streamed_status(
    postgres_url: str, tmp_path: Path
) -> None:
    (script,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    shell, _ = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    serve, subscribe, status = (line.split()[1:] for line in shell.splitlines())
    made = [sys.executable, "-c", script.replace(URL, postgres_url)]
    subprocess.run(made, cwd=ROOT, env=environment(), check=True, timeout=60)
    serve = [postgres_url if each == URL else each for each in serve]
    command = [sys.executable, "-m", "pubsub_emulator", *serve, "--port", "0"]
    unbuffered = environment(PYTHONUNBUFFERED="1")
    node = subprocess.Popen(
        command, cwd=tmp_path, env=unbuffered, stdout=subprocess.PIPE, text=True
    )
    try:
        assert node.stdout is not None
        address = node.stdout.readline().partition("grpc://")[2].split(": ")[0]
        told = program(*status, "--node", address)
        for _ in range(100):  # the node reads while it serves
            if told.returncode == 0:
                break
            told = program(*status, "--node", address)
        assert json.loads(told.stdout.splitlines()[-1])["status"] == "APPROVED", told.stderr
        read = program(*subscribe, "--node", address)
        kinds = [json.loads(line)["type"] for line in read.stdout.splitlines()]
        assert kinds == [
            "CREATE_DID",
            "UPDATE_DID",
            "ISSUE_CREDENTIAL_BATCH",
            "REVOKE_CREDENTIALS",
        ], read.stderr
    finally:
        node.kill()
        node.wait()
        node.stdout.close()  # type: ignore[union-attr]  # a pipe


def test_the_page_names_what_the_program_knows() -> None:
    assert f"stage two of the schema is {SCHEMAS[0]} to {SCHEMAS[-1]}" in PAGE
    assert f"{DEPTH} unless you say otherwise" in PAGE
