"""Mutations: changes that break the product on purpose, one by one, each with the quick tests that must notice."""
