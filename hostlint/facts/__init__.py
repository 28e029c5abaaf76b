"""What one file says: its outline and the value graphs of its functions."""
