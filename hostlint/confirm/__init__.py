"""Joins what a run showed with what a scan said; needs no torch."""
