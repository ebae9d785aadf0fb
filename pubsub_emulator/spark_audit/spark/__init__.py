"""The audit as a Spark job: sessions, shipping, jobs. The only place that imports pyspark."""
