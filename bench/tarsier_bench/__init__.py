"""Benchmarks of Tarsier beside the kernel's audit; see bench/README.md."""
