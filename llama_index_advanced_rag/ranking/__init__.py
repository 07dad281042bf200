"""Scoring, fusing and ordering ids: pure functions on ids and arrays."""
