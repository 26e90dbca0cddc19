"""Introduces itself with another firmware each time."""

import os

import toy

toy.HELLO["firmware"] = str(os.getpid())
toy.main()
