"""The command line: thin commands over `hostlint.scan`, `hostlint.registry` and `hostlint.report`."""
