"""Measuring how much memory a container can really give."""
