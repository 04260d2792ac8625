"""gpuyard: a GPU training platform as code."""

__version__ = "0.1.0"
