"""Tests of the benchmarks' package: python3 -m unittest discover -t bench -s bench/tests."""
