"""The files that spark-submit is given. They lie alone: Spark puts their folder on Python's path, where modules shadow others."""
