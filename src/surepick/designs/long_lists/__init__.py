"""Designs for rows too many for memory."""
