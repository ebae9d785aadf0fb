"""The audit on Spark: sessions, jobs, data sources, and the shipping of this program to workers.

Only this package imports pyspark.
"""
