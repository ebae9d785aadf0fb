"""What is in a file or folder that this program reads or writes.

view.py      what an inspection gives: a document for scripts, pages for people
kinds.py     which kind of file or folder a path is, and which function shows it
block.py     one judged block: header, verdict, ledger, deliveries, proof nodes
folders.py   histories, audits, folders of fixtures
parquet.py   a file of a table
files.py     scenarios, sessions, fixtures, cases, relay proofs, findings
"""

from pubsub_emulator.cli.inspect.kinds import look

__all__ = ["look"]
