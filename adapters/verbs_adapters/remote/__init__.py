"""The adapter contract over a pipe: the protocol, its client and its server."""
