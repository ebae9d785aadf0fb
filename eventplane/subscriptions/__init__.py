"""Subscriptions: tokens and cursors over a log, from the past into the present without a seam."""
