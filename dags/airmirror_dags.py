"""Every DAG of mirror.properties. What is wrong with single flows is the import error of configuration.py."""

from airmirror.airflow import dags

globals().update(dags())
