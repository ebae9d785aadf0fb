"""An audit's tables as other programs ask them: a folder per table, few large files, and a log of versions (AU-15).

publish    brings the folders up to what the audit's report names
delta      the Delta log beside a table's files, written without a JVM
ask        SQL over the tables in DuckDB
"""
