"""The page about one study."""
