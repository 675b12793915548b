"""The console: pages in Airflow that show what a mirror is doing. TypeScript in ``src``, built by ``airmirror_local.console``."""
