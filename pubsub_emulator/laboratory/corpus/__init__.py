"""Cases that every campaign plays first; `pubsub_emulator.laboratory.cases` describes the files."""
