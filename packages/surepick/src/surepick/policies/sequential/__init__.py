"""The engine of the certifying policies: what is guessed, what is tested, what is still to be measured."""
