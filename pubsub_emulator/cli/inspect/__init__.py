"""The contents of a file or folder that this program reads or writes.

view         an inspection: a document for scripts, pages for people
kinds        the kinds of files and folders, and the function that shows each
block        one judged block: header, verdict, ledger, deliveries, proof nodes
folders      histories, audits, folders of fixtures
parquet      a file of a table
files        scenarios, sessions, fixtures, cases, relay proofs, findings
"""
