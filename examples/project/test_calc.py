import unittest

from calc import mean, median


class Calc(unittest.TestCase):
    def test_mean(self):
        self.assertEqual(mean([1, 2, 6]), 3)

    def test_median(self):
        self.assertEqual(median([5, 1, 3]), 3)
        self.assertEqual(median([4, 1, 3, 2]), 2.5)

    def test_nothing(self):
        for function in mean, median:
            with self.assertRaises(ValueError):
                function([])


if __name__ == "__main__":
    unittest.main()
