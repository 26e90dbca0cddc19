"""Never says anything."""

import signal

signal.pause()
