"""What a project says about its scans: `[tool.hostlint]` in pyproject.toml, or hostlint.toml."""
