"""An audit's tables as other programs ask them: a folder per table, few large files, and a log of versions (AU-15).

parts      which files are the tables, and what a run changes of them
pack       the rows of results in few large files, written by units
delta      the Delta log beside a table's files, written without a JVM
ask        SQL over the tables in DuckDB
"""
