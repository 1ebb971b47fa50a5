"""One candidate is certified by an e-process for each rival."""
