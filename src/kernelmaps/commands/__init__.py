"""What the verbs of the command line do; `cli` parses the options and prints the results."""
