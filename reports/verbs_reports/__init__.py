"""Reports: result files of verbspec, and what is made of them.

Theory of operation
-------------------
A run leaves one *results file*: JSON lines, a header first, then programs, rules and choices, a footer
last.  :mod:`~verbs_reports.results` writes and reads it.  A file without a footer is *truncated*: the
run was killed.  It is still read, and every report says so at its top.

:mod:`~verbs_reports.verdicts` holds the one order of verdicts and the exit codes.

:mod:`~verbs_reports.summary` decides what a report says: the verdict, the lines of the rules, the
programs that explain them.  :mod:`~verbs_reports.markdown`, :mod:`~verbs_reports.html` and
:mod:`~verbs_reports.junit` only decide how it looks.  Each offers ``render(results) -> str``, a pure
function: same file, same bytes.

Nothing here imports the specification, the model or an adapter.  What a report needs to say of a rule
(its sentence, level and sources) travels in the results file, so that an old file stays readable.
"""
