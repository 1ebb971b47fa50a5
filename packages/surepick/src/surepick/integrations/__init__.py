"""Files and live runs of the programs that evaluate models: their answers become those of a study of test items."""
