"""What a change does: two renders compared, and the consequences in words."""
