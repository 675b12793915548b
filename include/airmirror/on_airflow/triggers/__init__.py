"""The part that Airflow's triggerer runs: growth of a source, heartbeats, late runs."""
