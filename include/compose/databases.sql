-- PostgreSQL runs this once, when its volume is made. The ledger has the database airmirror, Airflow its own.
create database airflow owner airmirror;
