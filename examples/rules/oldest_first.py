"""Is clean-up still late if what expired first goes first, with a cap of 20 entries a block?"""

from dataclasses import replace

from pubsub_emulator import rule


@rule
def constants(config):
    return replace(config, max_ttl_scans_per_idle=20)


@rule
def order(rows, now):
    return sorted(rows, key=lambda row: row.expiry)
