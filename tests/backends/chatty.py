"""Prints a line of log to standard output first."""

import toy

print("INFO toy: device toy0 is up", flush=True)
toy.main()
