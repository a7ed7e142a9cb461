"""Ways in which right kernels compute in float32, each as a change of a reference's operations."""
