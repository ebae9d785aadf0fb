"""Runs from start to end, and their figures beside those of others.

run          a scenario or session, with its history, summary, page and digest
figures      the figures of a run, history or audit by name, and their differences
sides        what can be compared: outputs, scenarios, files of rules, git revisions
first_difference
             the first block in which two histories differ, and why
comparison   several sides beside each other
"""
