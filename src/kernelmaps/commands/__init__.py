"""What the commands of the command line do; `cli` parses options and prints results."""
