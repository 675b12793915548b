"""What tests share: records produced and read back, and the comparison of two clusters."""
