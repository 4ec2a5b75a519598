"""A whole daemon under attack: what hostile peers and callers cost it, and what they cannot do."""
