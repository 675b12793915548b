"""Airflow: a package, so that the servers its tests share end with the last of them, not with the run."""
