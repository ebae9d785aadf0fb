"""Cases that every campaign plays first; `collator.cases` describes the files."""
