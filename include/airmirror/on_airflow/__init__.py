"""Joins the library to Airflow: DAGs, operators, connections, schedules. What runs in tasks is loaded in tasks only."""
