"""The ledger's schema under Alembic. Every revision is one file in ``versions``, and named in ``schema.VERSIONS``.

A migration may throw away what was read from a topic, together with its rows in ``scanned``: it is read again.
"""
