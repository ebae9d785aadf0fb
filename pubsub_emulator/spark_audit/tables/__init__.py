"""The tables of an audit's output, in a form that other programs can query (AU-15).

Each table is a folder with few, large files and a Delta log of its versions. `pack` writes the
files, `parts` decides which ones are needed, `delta` writes the log, and `ask` answers SQL.
"""
