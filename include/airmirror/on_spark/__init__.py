"""Joins windows to Spark: sessions, slots as tasks, result rows. Only this package and spark_jobs import Spark."""
