"""The forms in which a scan's result is written; each module of this package knows one."""
