"""Tests of waiting for loggers."""

import tempfile
import unittest
from pathlib import Path

from tarsier_bench import loggers


class WaitForQuiet(unittest.TestCase):
    """The log may be away while it is rotated."""

    def test_a_log_that_is_there_and_does_not_grow_is_quiet(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            log = Path(directory) / "audit.log"
            log.write_bytes(b"a line\n")
            self.assertEqual(loggers.size_of(log), 7)
            loggers.wait_for_quiet(log, 0.001)

    def test_a_log_that_is_away_is_waited_for_until_the_time_is_over(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            log = Path(directory) / "audit.log"
            self.assertIsNone(loggers.size_of(log))
            loggers.wait_for_quiet(log, 0.001, seconds=0.01)
