"""A control beside Algorithm 2: its counts and threshold without its network."""
