"""The paper's algorithms, a file each: 1 with 3 and RAGE, 2, and 4."""
