"""The project: an environment becomes objects here, and `__main__` hands them to Pulumi."""
