"""Deliveries of an event server as tables.

`spark.deliveries` and `spark.statuses` audit them afterwards (EV-40).
"""
