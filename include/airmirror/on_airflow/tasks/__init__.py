"""What Airflow's workers run: the work of every task. Loaded in tasks only."""
