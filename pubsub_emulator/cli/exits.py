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
    0: "success",
    FINDINGS: "findings: a cheat, a surprise, a difference",
    USAGE: "wrong usage or input; the message names the place",
    INCOMPLETE: "some data could not be read; the output names it",
    INFRASTRUCTURE: "the environment failed: disk, Java, a missing package",
    BOTH: "findings, and some data could not be read: 1 and 3 together",
    DEFECT: "a defect of this program; its message helps to find it",
    INTERRUPTED: "interrupted; no output is half-written, and an audit keeps its work",
    PIPE_CLOSED: "the reader closed the pipe; this is not a verdict",
}
