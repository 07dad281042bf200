"""What stands in a question that says how to look for its answer, and the ways it speaks for: rules in English and French."""
