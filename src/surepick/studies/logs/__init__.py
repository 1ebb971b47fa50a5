"""What was asked and told: the rows, in memory or in a database."""
