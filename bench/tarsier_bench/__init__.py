"""Benchmarks of Tarsier and the kernel's audit; see bench/README.md."""
