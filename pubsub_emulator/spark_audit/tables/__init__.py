"""An audit's tables as other programs ask them: a folder per table, few large files, and a log of versions (AU-15).

parts      the rows of results in few large files
delta      the Delta log beside a table's files, written without a JVM
ask        SQL over the tables in DuckDB
"""
