"""Measures on a real GPU which call forms of torch make the host wait: `python -m hostlint.runtime_checks.measure_waits --help`."""
