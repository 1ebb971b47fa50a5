"""The commands that the server adds: `surepick serve` and `surepick token`, found by entry points."""
