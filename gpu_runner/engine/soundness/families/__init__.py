"""Ways in which correct kernels compute in float32, each as a change to the reference's code."""
