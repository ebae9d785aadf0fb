"""Deliveries of an event server as tables, so that they can be verified afterwards (EV-40).

tables   the tables: the log, its rewinds, streams, deliveries
tagged   an event's fields as text that Spark can compare exactly
writer   appends parts to the tables, each whole or not at all

The job that joins them is `spark_audit.spark.deliveries`.
"""
