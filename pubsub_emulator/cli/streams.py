"""Standard streams whose encoding lacks some characters, such as Latin-1 or ASCII.

Every text that goes to a terminal, file or pipe passes through the encoding of its stream: click's
help, rich's tables, log lines and tracebacks. `prepare_streams` changes the streams themselves, so
that none of these can fail.
"""

import codecs
import sys
from io import TextIOWrapper
from typing import IO, Final

from pubsub_emulator.files.shown import escaped

PROSE: Final = "pubsub-prose"
"""The error handler that writes ASCII for the project's own typography, and escapes other
characters as in JSON.
"""
DOCUMENT: Final = "pubsub-document"
"""The error handler that escapes every character as in JSON, so that a document keeps its meaning.
"""

ASCII: Final = "ascii_terminal"
"""The name under which streams use ASCII.

If a stream's encoding is called ASCII, click takes this for a mistake and writes UTF-8.
"""

_TYPOGRAPHY: Final = {"…": "...", "→": "->", "µ": "u", "·": "-", "≤": "<="}


def _as_prose(error: UnicodeError) -> tuple[str, int]:
    """Handle an error as `PROSE` does: return a substitute, and where to go on encoding."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return (
        "".join(_TYPOGRAPHY.get(character) or escaped(character) for character in lacking),
        error.end,
    )


def _as_document(error: UnicodeError) -> tuple[str, int]:
    """Handle an error as `DOCUMENT` does: return a substitute, and where to go on encoding."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(escaped, error.object[error.start : error.end])), error.end


def _codec(name: str) -> codecs.CodecInfo | None:
    """Return Python's ASCII codec under the name `ASCII`, and `None` for other names.

    Python calls this function for each encoding that it does not know.
    """
    if name != ASCII:
        return None
    plain = codecs.lookup("ascii")
    return codecs.CodecInfo(
        plain.encode,
        plain.decode,
        incrementalencoder=plain.incrementalencoder,
        incrementaldecoder=plain.incrementaldecoder,
        name=ASCII,
    )


codecs.register_error(PROSE, _as_prose)
codecs.register_error(DOCUMENT, _as_document)
codecs.register(_codec)


def prepare_streams() -> None:
    """Make the standard streams accept text that their encodings cannot represent.

    Standard output and error replace such characters. Standard input turns bytes that it cannot
    decode into lone surrogates, as in the program's arguments. The commands that read lines refuse
    them.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            is_ascii = codecs.lookup(stream.encoding).name == "ascii"
            stream.reconfigure(encoding=ASCII if is_ascii else None, errors=PROSE)
    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(errors="surrogateescape")


def shown_on(stream: IO[str], text: str, errors: str = PROSE) -> str:
    """Return a text as the stream will show it.

    Streams in memory have no encoding and show everything.
    """
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, errors).decode(encoding)
