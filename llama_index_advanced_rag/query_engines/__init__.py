"""Answering: one engine a file."""
