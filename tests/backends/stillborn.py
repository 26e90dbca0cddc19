"""Ends before it says hello."""

import sys

sys.exit("toy: no device toy0")
