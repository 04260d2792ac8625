"""How fast gpuyard is, in CPU time of cold processes and as ratios to the tools that it replaces."""
