"""The rules under which a history was made, as its first checkpoint's runtime names them."""

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.storage_keys import CODE
from pubsub_emulator.runtime.pallet_subscriber.config import decode_spec
from pubsub_emulator.runtime.rules import RulesError, chosen
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.manifest import COMMITS
from pubsub_emulator.spark_audit.history.reader import Fault, manifest_names, read_commits, read_file
from pubsub_emulator.spark_audit.history.storage import Store


def rules_in(store: Store) -> bytes | None:
    """The digest of a history's rules, empty for the shipped ones; `None` where it has no runtime that can be read."""
    if not store.exists(COMMITS):
        return None
    commits, _ = read_commits(store, sorted(manifest_names(store))[:1])
    files = [entry for commit in commits for entry in commit.files if entry.table == schema.CHECKPOINTS.name]
    for entry in files[:1]:
        for unit in read_file(store, entry):
            if isinstance(unit, Fault):
                return None
            for row in unit.to_pylist():
                code = next((each["value"] for each in row["entries"] if each["key"] == CODE), b"")
                try:
                    return decode_spec(code).rules
                except PubsubError:
                    return None
    return None


def ensure_rules(store: Store) -> None:
    """Raise `RulesError` unless the chosen rules are those of the history."""
    found, given = rules_in(store), chosen()
    if found is None or found == given.digest:
        return
    made = f"the rules 0x{found.hex()}" if found else "the shipped rules"
    mine = (
        f"{given.path} is 0x{given.digest.hex()}" if given.digest else "no rules are given; `--rules` names their file"
    )
    raise RulesError(f"{store}: the history was made with {made}, and {mine}")
