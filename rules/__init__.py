"""The rules, one module each: see CONTRIBUTING.md."""
