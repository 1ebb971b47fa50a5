"""What is read of a study afterwards: all decisions, computed again; and its results, as a table."""
