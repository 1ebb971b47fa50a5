"""Files and live runs of programs that evaluate models, and searches of other packages."""
