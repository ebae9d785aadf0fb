"""Cases that every campaign plays first; `pubsub_emulator.collator.cases` describes the files."""
