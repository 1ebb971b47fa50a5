"""Algorithm 2: elimination with a trained network."""
