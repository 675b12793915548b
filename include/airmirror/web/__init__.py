"""The FastAPI app that Airflow's API server mounts under /airmirror, for those who may see its plugins only."""
