"""Differences within blocks, of noise whose scale nobody knows: common random numbers, complete blocks."""
