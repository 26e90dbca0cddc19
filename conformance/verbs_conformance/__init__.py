"""Drives a backend and judges it."""
