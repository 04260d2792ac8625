"""Content: one package for each capability. Each has a `register(registry)` that adds its components and job kinds."""
