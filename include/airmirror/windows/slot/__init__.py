"""What one slot does: fetch, restamp, produce, read back, commit; every offset accounted for."""
