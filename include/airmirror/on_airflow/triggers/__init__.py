"""What Airflow's triggerer runs: growth of a source, heartbeats, late runs."""
