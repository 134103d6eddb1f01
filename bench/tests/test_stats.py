"""Statistics, compared with values computed by hand and tested on random values."""

import random
import unittest
from collections.abc import Callable

from tarsier_bench import stats
from tarsier_bench.stats import Timing


def cell(low: float, spread: float | None = None) -> Timing:
    """A timing whose median does not matter."""
    found: Timing = {"min": low, "median": low}
    if spread is not None:
        found["spread"] = spread
    return found


class Spread(unittest.TestCase):
    def test_one_value_has_none(self) -> None:
        self.assertIsNone(stats.spread([135.0]))
        self.assertIsNone(stats.spread_of(135, 135, 135, 1))

    def test_few_values_spread_up_to_the_highest(self) -> None:
        self.assertEqual(stats.spread([100, 103]), 3)
        self.assertEqual(stats.spread([110, 100, 101]), 10)
        self.assertEqual(stats.spread([100, 101, 102, 103, 150]), 50)

    def test_many_values_spread_up_to_the_median(self) -> None:
        # Sorted: 100 101 102 104 105 106; the median is 103.
        self.assertEqual(stats.spread([104, 100, 106, 102, 101, 105]), 3)

    def test_a_disturbed_round_of_six_does_not_widen_it(self) -> None:
        self.assertEqual(stats.spread([104, 100, 9999, 102, 101, 105]), 3)

    def test_values_alike_do_not_spread(self) -> None:
        self.assertEqual(stats.spread([7, 7, 7]), 0)

    def test_summary_and_values_agree(self) -> None:
        values = [269.0, 337.0, 301.0, 280.0, 300.0, 310.0]
        self.assertEqual(stats.spread(values), stats.spread_of(269, 300.5, 337, 6))
        self.assertEqual(stats.spread(values), 31.5)


class TimingOfRounds(unittest.TestCase):
    def test_lowest_minimum_and_median_of_medians(self) -> None:
        found = stats.timing([135.0, 137.2, 140.1, 136.0], [190.0, 180.0, 185.04, 200.0])
        self.assertEqual(found, {"min": 135.0, "median": 187.5, "spread": 5.1})

    def test_a_disturbed_round_does_not_move_the_minimum(self) -> None:
        calm = stats.timing([135.0, 137.0, 136.0], [180.0, 181.0, 182.0])
        disturbed = stats.timing([135.0, 9000.0, 136.0], [180.0, 9500.0, 181.0])
        self.assertEqual(disturbed["min"], calm["min"])
        self.assertEqual(disturbed["median"], 181.0)

    def test_one_round_leaves_the_spread_out(self) -> None:
        self.assertEqual(stats.timing([135.0], [189.44]), {"min": 135.0, "median": 189.4})


class Noise(unittest.TestCase):
    def test_the_widest_known_spread(self) -> None:
        self.assertEqual(stats.noise(1.5, None, 4.0), 4.0)
        self.assertEqual(stats.noise(0.0), 0.0)
        self.assertIsNone(stats.noise(None, None))

    def test_a_difference_of_the_width_is_noise_and_more_is_not(self) -> None:
        self.assertTrue(stats.is_noise(4.0, 4.0))
        self.assertTrue(stats.is_noise(-4.0, 4.0))
        self.assertFalse(stats.is_noise(4.1, 4.0))
        self.assertFalse(stats.is_noise(-4.1, 4.0))

    def test_nothing_is_called_noise_where_that_is_not_known(self) -> None:
        self.assertFalse(stats.is_noise(0.0, None))
        self.assertFalse(stats.within_noise(cell(100), cell(100)))

    def test_either_side_may_be_the_noisy_one(self) -> None:
        self.assertTrue(stats.within_noise(cell(100, 1), cell(108, 9)))
        self.assertTrue(stats.within_noise(cell(108, 9), cell(100, 1)))
        self.assertTrue(stats.within_noise(cell(108), cell(100, 9)))
        self.assertFalse(stats.within_noise(cell(100, 1), cell(108, 7)))


class Chance(unittest.TestCase):
    """Sides drawn from the same distribution, and sides that differ."""

    TRIALS = 600

    def share_of_differences(
        self, rounds: int, draw: Callable[[], float], more: float = 0.0
    ) -> float:
        """How often two sides are called different if one of them takes `more`."""
        told_apart = 0
        for _ in range(self.TRIALS):
            one = [draw() for _ in range(rounds)]
            other = [draw() + more for _ in range(rounds)]
            told_apart += not stats.within_noise(stats.timing(one, one), stats.timing(other, other))
        return told_apart / self.TRIALS

    def test_equal_sides_are_within_noise_nine_times_of_ten(self) -> None:
        chance = random.Random(1)
        kinds: dict[str, Callable[[], float]] = {
            "exponential": lambda: 1000 + chance.expovariate(0.02),
            "normal": lambda: chance.gauss(1000, 20),
            "log-normal": lambda: 1000 + 10 * chance.lognormvariate(0, 1),
            "disturbed": lambda: chance.gauss(1000, 5) + 800 * (chance.random() < 0.1),
        }
        for rounds in (3, 4, 6, 20):
            for kind, draw in kinds.items():
                with self.subTest(rounds=rounds, kind=kind):
                    self.assertLess(self.share_of_differences(rounds, draw), 0.1)

    def test_a_difference_of_five_deviations_is_seen(self) -> None:
        chance = random.Random(2)
        for rounds in (3, 4, 6):
            with self.subTest(rounds=rounds):
                seen = self.share_of_differences(rounds, lambda: chance.gauss(1000, 10), 50)
                self.assertGreater(seen, 0.9)


class Percentages(unittest.TestCase):
    def test_what_is_added(self) -> None:
        self.assertAlmostEqual(stats.percent_added(150, 100), 50)
        self.assertAlmostEqual(stats.percent_added(75, 100), -25)
        self.assertEqual(stats.percent_added(100, 100), 0)

    def test_the_part_of_the_time(self) -> None:
        # Three quarters of 400 ns exceed the native 100 ns.
        self.assertAlmostEqual(stats.percent_of_time(100, 400), 75)
        self.assertEqual(stats.percent_of_time(100, 100), 0)


if __name__ == "__main__":
    unittest.main()
