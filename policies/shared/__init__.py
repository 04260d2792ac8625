"""What several rules need to know of training jobs, pods and pools."""
