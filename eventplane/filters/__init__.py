"""Filters: one small algebra, compiled to a predicate and to SQL."""
