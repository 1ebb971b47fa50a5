"""The command line: argument parsing and printing only."""

from surepick.cli.app import main

__all__ = ["main"]
