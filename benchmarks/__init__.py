"""Measurements of speed and memory against public tools; see docs/performance.md."""
