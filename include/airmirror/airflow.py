"""The face for Airflow's DAGs folder. A file of two lines there has all DAGs:

from airmirror.airflow import dags
globals().update(dags())
"""

from airmirror.on_airflow.dags.all_dags import check_configuration, dags

__all__ = ["check_configuration", "dags"]
