"""Certificates as files: written, registered, signed, and verified elsewhere."""
