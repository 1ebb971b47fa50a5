"""`surepick bench`."""
