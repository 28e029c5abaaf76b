"""hostlint: a linter for GPU host overhead in PyTorch code. Importing it never imports torch."""
