"""Where a cluster says who deploys to it: the ConfigMap that server-side apply writes before anything else."""

INVENTORY_NAMESPACE = "gpuyard-system"
INVENTORY_NAME = "gpuyard-inventory"
