"""The part that Airflow parses: DAGs, operators, schedules. Nothing of `tasks` is loaded here before a task runs."""
