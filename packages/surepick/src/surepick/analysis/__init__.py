"""A verdict on a finished table: the best, who may still be the best, tiers, above a control, the m best."""
