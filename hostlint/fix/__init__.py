"""`hostlint fix`: how rules word text edits, and how edits become files that parse, keep every other byte and lose their findings."""
