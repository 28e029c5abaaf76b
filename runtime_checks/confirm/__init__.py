"""What `hostlint confirm` puts into the user's processes: armed when torch is imported, and written so that no way to die loses a count."""
