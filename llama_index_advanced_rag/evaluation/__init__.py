"""Judging retrieval, and choosing its numbers by judgement."""
