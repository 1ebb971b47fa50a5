"""Logs: plans, leases, results and decisions as rows, in memory or in a database."""
