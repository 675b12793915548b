"""The hot path's own client: sockets, routes to leaders, logs, transactions, groups."""
