"""Objects as data: what they are, how they are ordered, written, read and checked. Knows nothing of environments."""

from gpuyard.manifests.rendered import LAYERS, RUN, Identity, Layer, Lifecycle, Manifest, Rendered, declare, identity

__all__ = ["LAYERS", "RUN", "Identity", "Layer", "Lifecycle", "Manifest", "Rendered", "declare", "identity"]
