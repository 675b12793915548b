"""No DAG: what is wrong with mirror.properties, as one import error. The flows that nothing is wrong with have their DAGs."""

from airmirror.on_airflow.dags.flows import check_configuration

check_configuration()
