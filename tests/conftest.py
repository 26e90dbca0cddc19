"""What holds for all tests.

Models, beliefs and solver terms are many objects that live long; the collector of cycles walks them again and again
and finds nothing.  It runs more rarely here, which saves a tenth of the time.
"""

from __future__ import annotations

import gc

gc.set_threshold(50_000, 20, 20)
