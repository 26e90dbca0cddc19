"""What holds for all tests.

Models, beliefs and solver terms are many objects that live long; the collector of cycles walks them again and again
and finds nothing.  It runs more rarely here, which saves a tenth of the time.

Hypothesis measures no time: on a machine that does other things too, a slow example is no failure.

Tests in ``lab`` boot guests and need minutes, root, and packages from the network: ``tox -e lab`` runs them, nothing
else does.
"""

from __future__ import annotations

import gc
import os

from hypothesis import settings

settings.register_profile("verbspec", deadline=None)
settings.load_profile("verbspec")
gc.set_threshold(50_000, 20, 20)

collect_ignore_glob = [] if os.environ.get("VERBSPEC_LAB") else ["lab/test_*.py"]
