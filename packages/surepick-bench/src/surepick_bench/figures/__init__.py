"""Figures of many replicates."""
