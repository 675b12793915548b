"""Joins the library to Airflow: what is parsed (dags), what workers run (tasks), what the triggerer runs (triggers)."""
