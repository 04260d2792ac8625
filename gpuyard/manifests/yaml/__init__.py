"""YAML and JSON out and in, with the scalar rules of kubectl."""
