"""The commands of `surepick --help` under "Studies": studies in a database."""
