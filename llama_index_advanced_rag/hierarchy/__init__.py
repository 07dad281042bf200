"""Documents to nodes with true offsets."""
