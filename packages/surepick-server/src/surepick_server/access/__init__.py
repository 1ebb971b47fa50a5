"""Who may do what: roles, tokens, and the trail of what was done."""
