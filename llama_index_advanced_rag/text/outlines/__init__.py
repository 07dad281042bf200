"""How an outline is recovered: one file for each thing that says where a heading is."""
