"""The coordinator: holds seeds, clock and verdict; standard library only, never torch."""
