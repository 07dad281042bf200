"""How names, numbers and dates are found: one file for each thing that says where one begins and ends."""
