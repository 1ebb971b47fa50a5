"""The loop closed with a program that measures."""
