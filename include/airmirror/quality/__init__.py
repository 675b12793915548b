"""The gate: Great Expectations over a window's rows, one row a partition. Only this package imports Great Expectations."""
