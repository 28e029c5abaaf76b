"""How often code runs: the call graph of a project and the heat that step loops spread over it."""
from __future__ import annotations

from hostlint.heat.callgraph import CallGraph, Edge
from hostlint.heat.heatmap import HeatMap, compute_heat

__all__ = ["CallGraph", "Edge", "HeatMap", "compute_heat"]
