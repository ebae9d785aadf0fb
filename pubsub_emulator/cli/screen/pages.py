"""Names that are in other rooms now. They work in this release, and warn."""

from pubsub_emulator.moved import renamed

__getattr__ = renamed(
    __name__,
    {
        **dict.fromkeys(
            ("Doing", "Grid", "Line", "Shown", "made_safe"),
            "pubsub_emulator.files.pages",
        ),
        **dict.fromkeys(
            ("PREVIEW", "printable", "words"),
            "pubsub_emulator.runtime.framework.words",
        ),
    },
)
