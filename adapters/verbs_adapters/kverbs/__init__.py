"""Kernel verbs: a small kernel module (`module/`, C, GPL-2.0) and the agent that drives it (`agent.py`).

Both are data: they are copied to the machine under test, the module is built for its kernel, and the agent runs
under that machine's own Python.
"""
