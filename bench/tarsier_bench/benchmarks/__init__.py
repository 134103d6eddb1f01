"""The benchmarks, each a module or package."""
