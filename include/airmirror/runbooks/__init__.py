"""Procedures that people start and approve: failover, failback, migration, take-over with hand-back, and their rehearsals."""
