"""Answers that are lists: above a threshold or a control, the m best, all that are good; with one proof for all."""
