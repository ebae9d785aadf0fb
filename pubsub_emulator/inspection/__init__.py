"""The contents of a file or folder that this program reads or writes.

Nothing is printed. The result is a document for scripts, lines and tables for people, or a page
for a browser.

view         an inspection: a document for scripts, pages for people
kinds        the kinds of files and folders, and the function that shows each
block        one judged block: header, verdict, ledger, deliveries, proof nodes
folders      histories, audits, folders of fixtures
parquet      a file of a table
files        scenarios, sessions, fixtures, cases, relay proofs, findings
drawing      a history, session, fixture, case or finding as a page
outputs      the outputs of this program in a folder, and which of them can be made again
removal      removes one of them
"""
