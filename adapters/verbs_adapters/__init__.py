"""The adapter contract and the backends that ship with verbspec."""
