"""The command line: each command parses, calls one service, shows what it answers."""
