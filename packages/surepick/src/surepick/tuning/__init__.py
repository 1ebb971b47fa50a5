"""Settings chosen from a pilot's results, with what that costs."""
