"""Mutation testing of softhca: faults that nobody planned, and whether a conformance run notices them.

Theory of operation
-------------------
The operators are those of mutmut.  :mod:`mutation.drawing` lets them change softhca's sources in every place that they
know, leaves out by rule what cannot change what a healthy device does, and draws by a seed as many from each group of
modules.  :mod:`mutation.conditions` runs the written programs once on the healthy device, under each of its APIs and
on devices that choose otherwise, and notes which lines each program executes.  :mod:`mutation.judging` makes a device
of the changed source in a process of its own, without touching a file, and judges it: by the written programs that
execute the changed lines, then by drawn ones, until the first failure or until its time is used up.
:mod:`mutation.outcome` keeps what came of each mutant, so that a run can be ended and gone on with, and
:mod:`mutation.page` tells it.
"""
