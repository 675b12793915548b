"""The part that Airflow's workers run: the work of every task. Loaded in tasks only."""
