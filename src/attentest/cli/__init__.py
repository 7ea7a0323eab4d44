"""The command line: one file for each group of commands. Heavy imports wait until a command needs them."""
