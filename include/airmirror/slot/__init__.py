"""One slot on an executor: fetch, restamp, produce, read back, commit; it knows nothing of the driver."""
