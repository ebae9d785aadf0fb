"""An audit's tables as other programs ask them: a folder per table, few large files, a log of versions (AU-15)."""
