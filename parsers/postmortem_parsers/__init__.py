"""Bytes of logs, samples and kernel reports become typed tables: one module a family of formats."""
