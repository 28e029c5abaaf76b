"""These tests import torch; where it is not installed (`.ci/other-pythons`) they are not collected."""
from __future__ import annotations

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("torch") else ["test_*.py"]
