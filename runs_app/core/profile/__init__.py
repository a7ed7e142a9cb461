"""What limits a kernel, as its profile and its device's environment tell; no Django."""
