"""The audit: what each block's proof cost and why, and whether a collator cheated, for a history of any length.

Read `schema` (the tables), `check` (one segment of one chain, in plain Python), `audit` (the entry point). Only
`spark/` knows of Spark; everything else runs without it.
"""
