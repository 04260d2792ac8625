"""Deploys Rendered objects with Pulumi. Nothing else in the framework imports pulumi."""
