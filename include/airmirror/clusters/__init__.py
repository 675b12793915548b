"""Connections to clusters: security for both clients, the hot path's protocol, the admin client."""
