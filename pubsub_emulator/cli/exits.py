"""The exit codes and their meaning, for the program, its help and its documentation."""

from typing import Final

FINDINGS: Final = 1
USAGE: Final = 2
INCOMPLETE: Final = 3
INFRASTRUCTURE: Final = 4
BOTH: Final = 5
DEFECT: Final = 70
INTERRUPTED: Final = 130
PIPE_CLOSED: Final = 141

MEANINGS: Final = {
    0: "done, and nothing to complain of",
    FINDINGS: "findings: a cheat, a surprise, a difference",
    USAGE: "wrong usage or input; the message names the place",
    INCOMPLETE: "not everything could be read; what could not is named",
    INFRASTRUCTURE: "the machine failed: disk, Java, a missing package",
    BOTH: "findings, and not everything could be read: 1 and 3 at once",
    DEFECT: "a defect of this program; what it says helps to find it",
    INTERRUPTED: "interrupted; no output is half-written, and an audit keeps its work",
    PIPE_CLOSED: "the reader closed the pipe; this is not a verdict",
}
