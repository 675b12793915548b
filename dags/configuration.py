"""No DAG: what is wrong with single flows of mirror.properties, as an import error. The others have their DAGs."""

from airmirror.airflow import check_configuration

check_configuration()
