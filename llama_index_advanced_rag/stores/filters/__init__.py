"""Metadata filters: whether one node matches, and masks over all of them."""
