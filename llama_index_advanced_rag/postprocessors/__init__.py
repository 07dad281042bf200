"""Refining: one node postprocessor a file."""
