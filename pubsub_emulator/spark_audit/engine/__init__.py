"""Units of work, and two of the engines that run them: this process, and a pool of processes.

The third engine, Spark, is in the package `spark`.
"""
