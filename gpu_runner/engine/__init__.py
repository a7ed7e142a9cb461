"""What runs in jails with torch: the oracle, the torch runner, the comparison of outputs.

Five rooms, flat but for what is large. `oracle` answers by `problem` and `formats`; `runner` serves
`subject`; `device_memory` and `device_calls` hold a GPU's arenas; `compare` and `diagnosis` judge
outputs; `operations`, `mutants`, `honest` and `families` ask whether a task is sound.
"""
