"""Deliveries of an event server as tables, so that they can be verified afterwards (EV-40) by `spark.deliveries`."""
