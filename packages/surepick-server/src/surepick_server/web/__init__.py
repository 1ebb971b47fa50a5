"""What holds for all routes: errors, limits, headers, and who is asking."""
