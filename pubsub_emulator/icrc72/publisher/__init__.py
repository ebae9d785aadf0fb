"""The role of a publisher: its log, publishing, replaying."""
