"""The fuzz laboratory: worlds, cases, campaigns and the corpus that every campaign plays first."""
