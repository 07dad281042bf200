"""Files to documents: one reader a format, a report line for each file that cannot be read."""
