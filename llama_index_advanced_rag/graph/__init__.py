"""What is known of entities: what each chunk says of them, and the graph that all chunks make together."""
